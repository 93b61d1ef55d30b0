package config

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
)

// MakeGossipKey is the command that does so, for messages.
const MakeGossipKey = "anteroom keys cluster --out cluster.key"

// gossipKeysMax bounds the list: what does not open is tried with each.
const gossipKeysMax = 8

// gossipFileMax bounds the file of keys, comments included.
const gossipFileMax = 16 << 10

// secrets hides texts, of which empty ones are none.
func secrets(texts ...string) []Secret {
	var all []Secret
	for _, t := range texts {
		if t != "" {
			all = append(all, NewSecret(t))
		}
	}
	return all
}

// GossipKeys are the gossip keys, of which the first seals and all open. Without
// one the node is a cluster of one.
func (s Security) GossipKeys() [][]byte {
	var keys [][]byte
	for _, k := range s.GossipKey {
		if key, err := decodeKey(k); err == nil { // Load has checked it
			keys = append(keys, key)
		}
	}
	return keys
}

// hasGossipKey reports whether there is a key, or a file that should have one.
func (s Security) hasGossipKey() bool { return len(s.GossipKey) > 0 || s.GossipKeyFile != "" }

// ParseGossipKeys reads the text of a file of gossip keys: one on a line, empty
// lines and those that begin with # are skipped.
func ParseGossipKeys(text []byte) ([]Secret, error) {
	var keys []Secret
	n := 0
	for line := range bytes.Lines(text) {
		n++
		line = bytes.TrimSpace(line)
		if len(line) == 0 || line[0] == '#' {
			continue
		}
		key := NewSecret(string(line))
		if _, err := decodeKey(key); err != nil {
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
		keys = append(keys, key)
	}
	if len(keys) == 0 {
		return nil, errors.New("no key in it")
	}
	return keys, checkKeyList(keys)
}

// checkKeyList says what is wrong with keys that are good each by itself.
func checkKeyList(keys []Secret) error {
	if len(keys) > gossipKeysMax {
		return fmt.Errorf("%d keys; give %d at most", len(keys), gossipKeysMax)
	}
	for i, k := range keys {
		if slices.ContainsFunc(keys[:i], k.Equal) {
			return errors.New("a key that is there twice; give each once")
		}
	}
	return nil
}

// decodeKey returns the bytes of a gossip key.
func decodeKey(s Secret) ([]byte, error) {
	key, err := base64.StdEncoding.DecodeString(s.Reveal())
	if err != nil {
		return nil, errors.New("not base64")
	}
	switch len(key) {
	case 16, 24, 32:
		return key, nil
	}
	return nil, fmt.Errorf("base64 of %d bytes, where 16, 24 or 32 are needed", len(key))
}

// checkGossipKeys looks at the keys in the file itself.
func (f *File) checkGossipKeys() {
	const key = "security.gossip_key"
	s := f.Config.Security
	if len(s.GossipKey) > 0 && s.GossipKeyFile != "" {
		f.fault("security.gossip_key_file", "given beside security.gossip_key; give one of them")
		return
	}
	for i, k := range s.GossipKey {
		at := key
		if len(s.GossipKey) > 1 {
			at += index(i)
		}
		if isSample(k) {
			f.fault(at, "that of the sample; make one with: %s", MakeGossipKey)
		} else if _, err := decodeKey(k); err != nil {
			f.fault(at, "%v; make one with: %s", err, MakeGossipKey)
		}
	}
	if err := checkKeyList(s.GossipKey); err != nil {
		f.fault(key, "%v", err)
	}
}

// readGossipKeys reads security.gossip_key_file.
func (f *File) readGossipKeys() {
	const key = "security.gossip_key_file"
	name := f.Config.Security.GossipKeyFile
	remedy := "make it with: anteroom keys cluster --out " + string(name)
	if name == "" || f.blamed(key) || !f.readable(key, name, remedy) {
		return
	}
	f.checkPrivate(key, name)
	text, err := readSome(string(name))
	if err == nil {
		var keys []Secret
		if keys, err = ParseGossipKeys(text); err == nil {
			f.Config.Security.GossipKey = keys
			return
		}
	}
	f.fault(key, "%s: %v; %s", name, cause(err), remedy)
}

// readSome reads a file of keys.
func readSome(name string) ([]byte, error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer file.Close() //nolint:errcheck // nothing was written
	text, err := io.ReadAll(io.LimitReader(file, gossipFileMax+1))
	if err == nil && len(text) > gossipFileMax {
		err = fmt.Errorf("longer than %d KiB", gossipFileMax>>10)
	}
	return text, err
}
