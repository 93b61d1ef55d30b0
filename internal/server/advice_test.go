package server

import (
	"net"
	"os"
	"strings"
	"syscall"
	"testing"
)

func TestWhoMayNotListenIsToldWhy(t *testing.T) {
	for why, want := range map[syscall.Errno]string{syscall.EACCES: "cap_net_bind_service", syscall.EADDRINUSE: "another program"} {
		err := &net.OpError{Op: "listen", Net: "tcp", Err: os.NewSyscallError("bind", why)}
		if got := advice(err); !strings.Contains(got, want) {
			t.Errorf("%v: %s, want %s", err, got, want)
		}
	}
}
