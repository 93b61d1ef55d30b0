package seal

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// ErrKeys is a key file, or what another node offered as its keys, that is not one.
var ErrKeys = errors.New("seal: bad keys")

// fileMax bounds what is read: 64 keys take about 20 KB.
const fileMax = 64 << 10

// Load merges the keys of a file into the ring.
func (r *Ring) Load(name string) error {
	f, err := os.Open(name)
	if err != nil {
		return fmt.Errorf("seal: read keys: %w", err)
	}
	b, err := io.ReadAll(io.LimitReader(f, fileMax+1))
	if err = errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("seal: read keys: %w", err)
	}
	if len(b) > fileMax {
		return fmt.Errorf("%w: %s is over %d bytes", ErrKeys, name, fileMax)
	}
	if _, err := r.Merge(b); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

// Save writes the ring's keys to a file that only its owner may read, whole or
// not at all.
func (r *Ring) Save(name string) (err error) {
	dir := filepath.Dir(name)
	f, err := os.CreateTemp(dir, "."+filepath.Base(name)+"-*") // 0600
	if err != nil {
		return fmt.Errorf("seal: save keys: %w", err)
	}
	defer func() {
		if err != nil {
			_ = os.Remove(f.Name())
			err = fmt.Errorf("seal: save keys: %w", err)
		}
	}()
	_, err = f.Write(r.Export())
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	if err = os.Rename(f.Name(), name); err != nil {
		return err
	}
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
