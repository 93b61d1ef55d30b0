// Package live has tests only: clusters of real processes, talking over real
// sockets, that are killed, stopped and started again under a crowd. They run
// when ANTEROOM_E2E is set:
//
//	ANTEROOM_E2E=1 go test ./internal/live
//
// Sessions are of seconds, so that D, the time after which a dead node's slots
// are made again, is short.
package live
