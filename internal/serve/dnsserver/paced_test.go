package dnsserver_test

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/miekg/dns"
	"go.uber.org/goleak"

	"github.com/mesh-agent/mesh-agent/simtest/waittest"
)

// The environment of the process of the paced client: the server's address, and the number of questions in a second.
const (
	pacedAddress = "DNS_BENCHMARK_ADDRESS"
	pacedRate    = "DNS_BENCHMARK_RATE"
)

// pacedFor is how long the paced client asks.
const pacedFor = 5 * time.Second

func TestMain(m *testing.M) {
	if address := os.Getenv(pacedAddress); address != "" {
		if err := runPaced(address, os.Getenv(pacedRate)); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	goleak.VerifyTestMain(m)
}

// delays are milliseconds from when a question was due until its answer was read.
type delays struct {
	P50, P99, Most float64
	Lost           int
}

// paced sends this many questions a second from another process, whose threads wait in the kernel: timers and
// goroutines in the process of the server would measure their own delays.
func paced(b *testing.B, address string, rate float64) (d delays) {
	b.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), pacedAddress+"="+address, fmt.Sprintf("%s=%f", pacedRate, rate))
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	waittest.Must(b, err)
	waittest.Must(b, json.Unmarshal(out, &d))
	return d
}

// runPaced is the process of the paced client.
func runPaced(address, rate string) error {
	perSecond, err := strconv.ParseFloat(rate, 64)
	if err != nil {
		return err
	}
	socket, err := connect(address)
	if err != nil {
		return err
	}
	defer func() { _ = syscall.Close(socket) }()
	var questions [][]byte
	for i := range benchServices {
		q := new(dns.Msg)
		q.SetQuestion(fmt.Sprintf("s%d.shop.svc.clusterset.local.", i), dns.TypeA)
		packed, err := q.Pack()
		if err != nil {
			return err
		}
		questions = append(questions, packed)
	}
	debug.SetGCPercent(-1)
	most := int(perSecond * pacedFor.Seconds())
	due, took, read := make([]atomic.Int64, 1<<16), make([]time.Duration, 0, most), make(chan error, 1) // due is by the ID of the question
	began, every := time.Now(), time.Duration(float64(time.Second)/perSecond)
	go func() {
		read <- readAnswers(socket, func(id uint16) { took = append(took, time.Since(began)-time.Duration(due[id].Load())) })
	}()
	runtime.LockOSThread() // a thread of its own sleeps for microseconds
	for sent := range most {
		next := every * time.Duration(sent)
		if early := next - time.Since(began); early > 0 {
			rest := syscall.NsecToTimespec(int64(early))
			_ = syscall.Nanosleep(&rest, nil) // it may end too soon
		}
		q, id := questions[rand.IntN(len(questions))], uint16(sent) //nolint:gosec // in turns
		binary.BigEndian.PutUint16(q, id)
		due[id].Store(int64(next))
		if _, err := syscall.Write(socket, q); err != nil {
			return err
		}
	}
	if err := <-read; err != nil { // when no answer came for a second
		return err
	}
	slices.Sort(took)
	at := func(percent int) float64 { return took[(len(took)-1)*percent/100].Seconds() * 1000 }
	return json.NewEncoder(os.Stdout).Encode(delays{P50: at(50), P99: at(99), Most: at(100), Lost: most - len(took)})
}

// readAnswers returns when no answer came for a second.
func readAnswers(socket int, note func(id uint16)) error {
	runtime.LockOSThread()
	for buffer := make([]byte, 4096); ; {
		n, err := syscall.Read(socket, buffer)
		switch {
		case errors.Is(err, syscall.EAGAIN):
			return nil
		case err != nil && !errors.Is(err, syscall.EINTR):
			return err
		case n > 12:
			note(binary.BigEndian.Uint16(buffer))
		}
	}
}

// connect opens a socket whose reads wait for a second at most.
func connect(address string) (int, error) {
	to, err := netip.ParseAddrPort(address)
	if err != nil {
		return 0, err
	}
	socket, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_DGRAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return 0, err
	}
	return socket, errors.Join(
		syscall.SetsockoptTimeval(socket, syscall.SOL_SOCKET, syscall.SO_RCVTIMEO, &syscall.Timeval{Sec: 1}),
		syscall.Connect(socket, &syscall.SockaddrInet4{Port: int(to.Port()), Addr: to.Addr().As4()}),
	)
}
