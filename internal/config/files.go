package config

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// checkFiles finds files that are not there, may not be read, or are not what
// they should be.
func (f *File) checkFiles() {
	s := f.Config.Security
	if s.SigningKeys != "" && f.readable("security.signing_keys", s.SigningKeys, "make it with: anteroom keys new --out "+string(s.SigningKeys)) {
		f.checkPrivate("security.signing_keys", s.SigningKeys)
	}
	f.checkSecretsHere()
	f.readGossipKeys()
	f.checkPair("security.tls.gateway", s.TLS.Gateway)
	f.checkPair("security.tls.admin", s.TLS.Admin)
	f.checkPair("security.tls.grpc", s.TLS.GRPC)
	if ca := s.TLS.Peer.CA; ca != "" && f.readable("security.tls.peer.ca", ca, "give the PEM file of the authority that signs the nodes' certificates") {
		text, _ := os.ReadFile(string(ca))
		if !x509.NewCertPool().AppendCertsFromPEM(text) {
			f.fault("security.tls.peer.ca", "%s has no certificate in it; give a PEM file", ca)
		}
	}
	f.checkPair("security.tls.peer", KeyPair{Cert: s.TLS.Peer.Cert, Key: s.TLS.Peer.Key})
	f.checkData()
	f.readPages()
	f.readNotificationSecrets()
}

// readable reports whether the file can be read; if not, remedy says what to do.
func (f *File) readable(key string, name Path, remedy string) bool {
	file, err := os.Open(string(name))
	if err == nil {
		var info fs.FileInfo
		info, err = file.Stat()
		file.Close() //nolint:errcheck // nothing was written
		if err == nil && info.IsDir() {
			err = errors.New("is a directory")
		}
	}
	switch {
	case err == nil:
		return true
	case errors.Is(err, fs.ErrNotExist):
		f.fault(key, "%s is not there; %s", name, remedy)
	default:
		f.fault(key, "%s cannot be read: %v; give a file that this user may read", name, cause(err))
	}
	return false
}

func (f *File) checkPair(key string, p KeyPair) {
	if p.Cert == "" || p.Key == "" {
		return
	}
	cert := f.readable(key+".cert", p.Cert, "give a PEM file")
	if !f.readable(key+".key", p.Key, "give a PEM file") || !cert {
		return
	}
	f.checkPrivate(key+".key", p.Key)
	if _, err := tls.LoadX509KeyPair(string(p.Cert), string(p.Key)); err != nil {
		f.fault(key, "%v; give a PEM certificate and the key that belongs to it", err)
	}
}

// checkData sees that node.data is a directory, or can become one.
func (f *File) checkData() {
	dir := string(f.Config.Node.Data)
	if dir == "" {
		return
	}
	for at := filepath.Clean(dir); ; at = filepath.Dir(at) {
		info, err := os.Stat(at)
		switch {
		case err == nil && info.IsDir():
			if at == filepath.Clean(dir) {
				f.checkDataPrivate(at)
			}
			return
		case err == nil:
			f.fault("node.data", "%s is no directory; give one, it is made if it is not there", at)
			return
		case !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.ENOTDIR) || at == filepath.Dir(at):
			f.fault("node.data", "%s: %v; give a directory that this user may use", at, cause(err))
			return
		}
	}
}
