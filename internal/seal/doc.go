// Package seal keeps the keys of a cluster and makes with them what visitors
// carry: tickets and passes that only a node of the cluster can read, and
// passes that an origin can verify by itself.
//
// # Sealed strings
//
// A ticket or a pass is packed into some eighty bytes and sealed with
// AES-256-GCM. Nobody without the key can read, change or make one. The string
// is base64url of
//
//	kind and version (1) | key id (8) | nonce (12) | ciphertext | tag (16)
//
// The kind, the key id and the room's name are authenticated with it, so a
// ticket never opens as a pass, and a place in one room is worth nothing in
// another. Nonces are random: a key is good for 2^32 strings, which at 10,000
// a second is five days, so rotate daily where it is busy.
//
// # Keys
//
// A Ring is a set of keys that only grows: rings of different nodes merge by
// union, in any order and any number of times, and end up equal. Every key of
// the ring opens what it sealed. One key seals: the newest that this ring has
// had for the settle time, in which the others get it too; the oldest while
// there is none such. A key that a newer one has replaced is dropped when
// nothing sealed with it can be alive any more.
//
// # Passes for origins
//
// JWT signs a pass with ES256 under the same key id, and JWKS publishes the
// public half of every key, those that do not sign yet included.
package seal
