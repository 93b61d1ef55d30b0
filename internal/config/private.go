package config

import (
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
)

// What others than the owner may do with a file. Windows has no such bits.
const (
	othersAny    fs.FileMode = 0o077
	worldRead    fs.FileMode = 0o004
	groupRead    fs.FileMode = 0o040
	groupWrite   fs.FileMode = 0o020
	worldWrite   fs.FileMode = 0o002
	withoutModes             = "windows"
)

// mayBe is the mode of a file if others may do one of these with it.
func mayBe(name string, bits fs.FileMode) (fs.FileMode, bool) {
	info, err := os.Stat(name)
	if err != nil || runtime.GOOS == withoutModes {
		return 0, false
	}
	return info.Mode().Perm(), info.Mode().Perm()&bits != 0
}

// checkPrivate warns of a file of secrets that others may read or write. One of
// another user's may be read by its group: so a service reads what root has put
// there, and a pod what is mounted for it.
func (f *File) checkPrivate(key string, name Path) {
	bits := othersAny
	if ofAnother(string(name)) {
		bits &^= groupRead
	}
	if mode, ok := mayBe(string(name), bits); ok {
		f.warn(key, "%s may be read by other users (mode %04o); run: chmod 600 %s", name, mode, name)
	}
}

// checkSecretsHere warns of each secret in the file itself where others may read
// or change it. A group may: that is how a service reads a file of root's.
func (f *File) checkSecretsHere() {
	mode, ok := mayBe(f.Name, worldRead|groupWrite|worldWrite)
	if !ok {
		return
	}
	for _, key := range []string{"security.gossip_key", "security.admin_token", "security.challenge_key"} {
		if at, ok := f.places[key]; ok && at.from == "" {
			f.warn(key, "%s has it and may be read or written by other users (mode %04o); run: chmod 600 %s", f.Name, mode, f.Name)
		}
	}
}

// checkDataPrivate refuses a directory in which anybody could put keys of theirs.
// It may be read: the files in it are for their owner alone.
func (f *File) checkDataPrivate(dir string) {
	if mode, ok := mayBe(dir, worldWrite); ok {
		f.fault("node.data", "%s may be written by every user of this machine (mode %04o), who could put keys and records of theirs there; "+
			"run: chmod 700 %s, or name a directory in it that only this user may write to", dir, mode, dir)
		return
	}
	if mode, ok := mayBe(dir, groupWrite); ok {
		f.warn("node.data", "%s may be written by its whole group (mode %04o), who could put keys and records of theirs there; run: chmod 700 %s", dir, mode, dir)
	}
	for _, name := range []string{"keys.json", "state.json"} {
		name = filepath.Join(dir, name)
		if mode, ok := mayBe(name, othersAny); ok {
			f.warn("node.data", "%s may be read by other users (mode %04o); run: chmod 600 %s", name, mode, name)
		}
	}
	if above, err := os.Stat(filepath.Dir(dir)); err == nil && runtime.GOOS != withoutModes && above.Mode().Perm()&worldWrite != 0 && above.Mode()&fs.ModeSticky == 0 {
		f.warn("node.data", "%s can be replaced by every user of this machine, who may write to %s (mode %04o)", dir, filepath.Dir(dir), above.Mode().Perm())
	}
}
