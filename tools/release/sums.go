package main

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"aead.dev/minisign"
)

// sum writes SHA256SUMS, as sha256sum --check reads it, and with a key its signature.
func (r *release) sum(key string) error {
	entries, err := os.ReadDir(r.out)
	if err != nil {
		return err
	}
	var sums bytes.Buffer
	for _, e := range entries {
		b, err := os.ReadFile(filepath.Join(r.out, e.Name()))
		if err != nil {
			return err
		}
		fmt.Fprintf(&sums, "%x  %s\n", sha256.Sum256(b), e.Name())
	}
	name := filepath.Join(r.out, "SHA256SUMS")
	if err := os.WriteFile(name, sums.Bytes(), 0o644); err != nil || key == "" {
		return err
	}
	private, err := secretKey(key)
	if err != nil {
		return err
	}
	message := minisign.NewReader(&sums)
	if _, err := io.Copy(io.Discard, message); err != nil {
		return err
	}
	signature := message.SignWithComments(private, "anteroom "+r.version, "SHA256SUMS of anteroom "+r.version)
	return os.WriteFile(name+".minisig", signature, 0o644)
}

// secretKey reads a key that minisign -G wrote, with a password or without.
func secretKey(name string) (minisign.PrivateKey, error) {
	text, err := os.ReadFile(name)
	if err != nil {
		return minisign.PrivateKey{}, fmt.Errorf("--key: %w", err)
	}
	var key minisign.PrivateKey
	if minisign.IsEncrypted(text) {
		key, err = minisign.DecryptKey(os.Getenv("MINISIGN_PASSWORD"), text)
		if err != nil {
			err = fmt.Errorf("--key %s: %w: set MINISIGN_PASSWORD to its password", name, err)
		}
		return key, err
	}
	if err := key.UnmarshalText(text); err != nil {
		return key, fmt.Errorf("--key %s: %w: give the secret key that minisign -G made", name, err)
	}
	return key, nil
}
