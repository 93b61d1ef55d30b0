// Package live has tests only: clusters of real processes, talking over real
// sockets, that are killed, stopped and started again under a crowd. They run
// when ANTEROOM_E2E is set:
//
//	ANTEROOM_E2E=1 go test ./internal/live
//
// Sessions are of seconds, so that D, the time after which a dead node's slots
// are made again, is short.
//
// An attacker, and a crowd that is to be bounded as one on the internet is, speak
// from public addresses in a network namespace (see stranger). That needs Linux,
// root and the program ip of iproute2. Without them such a test is skipped and
// says so; where the variable ANTEROOM_NO_SKIP is set, as .ci/run sets it, it
// fails.
package live
