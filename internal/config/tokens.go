package config

import (
	"slices"
	"strings"

	"github.com/anteroom/anteroom/internal/tokens"
)

// Token is what the bearer of a token may do, at node.grpc and the admin port.
type Token struct {
	Name   string   `json:"name"`
	Hash   string   `json:"hash"` // of the token, see package tokens
	May    []string `json:"may"`
	Rooms  []string `json:"rooms"`  // names, or beginnings of names and *
	Queues []string `json:"queues"` // the same
}

// Tokens are those of security.tokens. The file has been checked.
func (c Config) Tokens() *tokens.Set {
	all := make([]tokens.Token, len(c.Security.Tokens))
	for i, t := range c.Security.Tokens {
		h, _ := tokens.ParseHash(t.Hash)
		var may []tokens.Right
		for _, name := range t.May {
			if r, ok := tokens.ParseRight(name); ok {
				may = append(may, r)
			}
		}
		all[i] = tokens.Token{Name: t.Name, Hash: h, May: tokens.RightsOf(may...), Rooms: t.Rooms, Queues: t.Queues}
	}
	return tokens.NewSet(all)
}

// TokensForAdmin reports whether any of them counts on the admin port, which
// shows all rooms.
func (c Config) TokensForAdmin() bool {
	return slices.ContainsFunc(c.Security.Tokens, func(t Token) bool {
		return slices.Contains(t.Rooms, "*") && (slices.Contains(t.May, tokens.View.String()) || slices.Contains(t.May, tokens.Operate.String()))
	})
}

const (
	tokensMax  = 1000 // each is compared with that of a call
	makeTokens = "make one with: anteroom keys token"
)

func (f *File) checkTokens() {
	s := f.Config.Security
	if len(s.Tokens) > tokensMax {
		f.fault("security.tokens", "%d; list %d at most", len(s.Tokens), tokensMax)
		return
	}
	names, hashes := map[string]int{}, map[string]int{}
	for i, t := range s.Tokens {
		key := "security.tokens" + index(i)
		if f.unread[key] {
			continue
		}
		f.checkToken(key, t)
		if first, twice := names[t.Name]; twice && t.Name != "" {
			f.fault(key+".name", "%q is the name of security.tokens[%d] too; give each its own", t.Name, first)
		}
		if first, twice := hashes[t.Hash]; twice && t.Hash != "" {
			f.fault(key+".hash", "that of security.tokens[%d] too; %s", first, makeTokens)
		}
		names[t.Name], hashes[t.Hash] = i, i
	}
}

func (f *File) checkToken(key string, t Token) {
	if t.Name == "admin_token" {
		f.fault(key+".name", "that is what logs call security.admin_token; give another one")
	}
	if !matches(nodePattern, t.Name) {
		f.fault(key+".name", "%q is no name; give up to 128 letters, digits, dots, - and _, which logs call the token by", t.Name)
	}
	if _, err := tokens.ParseHash(t.Hash); strings.HasPrefix(t.Hash, "make-one-with-") {
		f.fault(key+".hash", "that of the sample; %s", makeTokens)
	} else if err != nil {
		f.fault(key+".hash", "%v; %s", err, makeTokens)
	}
	if len(t.May) == 0 {
		f.fault(key+".may", "empty; give some of %s", strings.Join(tokens.Names(), ", "))
	}
	for i, name := range t.May {
		if _, ok := tokens.ParseRight(name); !ok {
			f.fault(key+".may"+index(i), "%q; give some of %s", name, strings.Join(tokens.Names(), ", "))
		}
	}
	if len(t.Rooms) == 0 && len(t.Queues) == 0 {
		f.fault(key, "names nothing that it is for; give rooms or queues, such as queues: [jobs, team/*], or all: queues: [\"*\"]")
	}
	if len(t.Queues) == 0 && slices.Contains(t.May, tokens.Take.String()) {
		f.warn(key+".may", "take is for queues, and the token names none")
	}
	if len(t.Rooms) == 0 && slices.Contains(t.May, tokens.Authorize.String()) {
		f.warn(key+".may", "authorize is for rooms, and the token names none")
	}
	f.checkPatterns(key+".rooms", t.Rooms, roomPattern)
	f.checkPatterns(key+".queues", t.Queues, queuePattern)
}

// checkPatterns wants names, or beginnings of them with a * behind.
func (f *File) checkPatterns(key string, all []string, pattern string) {
	for i, p := range all {
		start, open := strings.CutSuffix(p, "*")
		if open && (start == "" || matches(pattern, strings.TrimSuffix(start, "/"))) || matches(pattern, p) {
			continue
		}
		f.fault(key+index(i), "%q is no name; give one, or the beginning of some and *, such as shop-*, or * alone for all", p)
	}
}

// checkPrograms refuses to let other machines call without proof, or in clear.
func (f *File) checkPrograms() {
	s, at := f.Config.Security, f.Config.Node.GRPC
	pair := s.TLS.GRPC
	f.together("security.tls.grpc", map[string]Path{"cert": pair.Cert, "key": pair.Key})
	if at == None || isLoopback(hostOf(at)) || f.blamed("node.grpc") || f.blamed("security.tls.grpc") || f.blamed("security.tokens") {
		return
	}
	var missing []string
	if pair.Cert == "" {
		missing = append(missing, "security.tls.grpc (a certificate and its key)")
	}
	if len(s.Tokens) == 0 {
		missing = append(missing, "security.tokens ("+makeTokens+")")
	}
	if len(missing) > 0 {
		f.fault("node.grpc", "%s can be reached from other machines, and there is no %s; set what is missing, or listen on 127.0.0.1:7002",
			at, strings.Join(missing, " and no "))
	}
}
