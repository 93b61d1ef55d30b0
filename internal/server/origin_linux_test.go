package server

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
)

// startOrigin starts a process that answers every request the same, so that
// what an origin does is not counted as the proxy's, and returns its address.
func startOrigin(b *testing.B, answer string) (addr string) {
	b.Helper()
	order, _ := json.Marshal(strain{Answer: answer}) // strings and numbers
	c := exec.Command(os.Args[0])
	c.Env = append(os.Environ(), strainEnv+"="+string(order), "GOMAXPROCS=1")
	c.Stderr = os.Stderr
	in, err := c.StdinPipe()
	if err != nil {
		b.Fatal(err)
	}
	out, err := c.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := c.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		_ = in.Close() // it ends with its input
		if err := c.Wait(); err != nil {
			b.Error(err)
		}
	})
	if _, err := fmt.Fscanln(out, &addr); err != nil {
		b.Fatalf("origin: %v", err)
	}
	return addr
}

// answer is the origin's hot loop: one thread, a read and a write for each
// request, which has no body and comes as a whole.
func answer(text string) error {
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		return err
	}
	f, err := l.(*net.TCPListener).File()
	if err != nil {
		return err
	}
	poll, err := syscall.EpollCreate1(0)
	if err != nil {
		return err
	}
	listen, input := int(f.Fd()), int(os.Stdin.Fd())
	for _, fd := range []int{listen, input} {
		if err := watch(poll, fd); err != nil {
			return err
		}
	}
	fmt.Println(l.Addr())
	reply, end := []byte(text), []byte("\r\n\r\n")
	events, buf := make([]syscall.EpollEvent, 256), make([]byte, 16<<10)
	for {
		n, err := syscall.EpollWait(poll, events, -1)
		if err != nil && err != syscall.EINTR {
			return err
		}
		for _, e := range events[:max(0, n)] {
			fd := int(e.Fd)
			switch fd {
			case input:
				return nil
			case listen:
				c, _, err := syscall.Accept4(listen, syscall.SOCK_NONBLOCK|syscall.SOCK_CLOEXEC)
				if err == nil {
					_ = syscall.SetsockoptInt(c, syscall.IPPROTO_TCP, syscall.TCP_NODELAY, 1)
					err = watch(poll, c)
				}
				if err != nil {
					return err
				}
			default:
				n, err := syscall.Read(fd, buf)
				switch {
				case err == syscall.EAGAIN:
				case err != nil || n <= 0:
					_ = syscall.Close(fd)
				case !bytes.HasSuffix(buf[:n], end):
					return fmt.Errorf("a request of %d bytes did not come as a whole: %w", n, io.ErrUnexpectedEOF)
				default:
					if _, err := syscall.Write(fd, reply); err != nil {
						_ = syscall.Close(fd)
					}
				}
			}
		}
	}
}

func watch(poll, fd int) error {
	return syscall.EpollCtl(poll, syscall.EPOLL_CTL_ADD, fd, &syscall.EpollEvent{Events: syscall.EPOLLIN, Fd: int32(fd)})
}

// aPage is an answer as a site gives it.
func aPage() string {
	page := "<!doctype html><title>The site</title>" + strings.Repeat("<p>Something to buy, and why.</p>\n", 60)
	return fmt.Sprintf("HTTP/1.1 200 OK\r\nDate: Sat, 21 Nov 2026 12:00:00 GMT\r\nServer: site\r\nContent-Type: text/html; charset=utf-8\r\n"+
		"Cache-Control: no-cache\r\nVary: Accept-Encoding\r\nSet-Cookie: site=1; Path=/; HttpOnly\r\nContent-Length: %d\r\n\r\n%s", len(page), page)
}
