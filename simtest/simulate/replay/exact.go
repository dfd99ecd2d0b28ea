//go:build linux && amd64

package main

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"
)

// runExactly runs a Go program so that nothing random and no time of the system decides what its goroutines do:
//   - The kernel gives each program 16 random bytes, from which Go makes all of its random numbers except those of
//     crypto/rand. They come from the schedule.
//   - The clock of the system, which decides for example how long a goroutine may wait for a mutex, stands still.
//   - The first thread that Go starts, its monitor, never runs. It would interrupt goroutines, as the clock says.
//   - All threads are on one processor, and one that wakes another one continues.
//
// The environment of the program does the rest: one goroutine runs at a time, and garbage is not collected concurrently.
func runExactly(cmd *exec.Cmd, schedule uint64, cpu uint) error {
	ended := make(chan error)
	go func() {
		runtime.LockOSThread() // and not unlocked: the thread has another priority, and is the tracer of the program
		ended <- trace(cmd, schedule, cpu)
	}()
	return <-ended
}

// maxProcessors is the number of processors that a set has room for.
const maxProcessors = 1024

func trace(cmd *exec.Cmd, seed uint64, cpu uint) error {
	var one, all unix.CPUSet
	if err := unix.SchedGetaffinity(0, &all); err != nil {
		return err
	}
	for ; !all.IsSet(int(cpu)); cpu++ {
		if cpu >= maxProcessors {
			return errors.New("there is no processor with the number -cpu or a higher one")
		}
	}
	one.Set(int(cpu))
	if err := unix.SchedSetaffinity(0, &one); err != nil {
		return fmt.Errorf("use the processor %d: %w", cpu, err)
	}
	if err := goFirst(); err != nil { // then other programs on the processor can disturb it
		if err := schedule(unix.SCHED_BATCH, 0); err != nil {
			return fmt.Errorf("let a thread continue that wakes another one: %w", err)
		}
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Ptrace: true, Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		return err
	}
	pid := cmd.Process.Pid
	monitor, err := prepare(pid, seed)
	if err == nil {
		err = syscall.PtraceDetach(pid)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("control the simulation (process %d): %w", pid, err), cmd.Process.Kill(), cmd.Wait())
	}
	_, err = syscall.Wait4(monitor, nil, syscall.WALL, nil) // it ends with the program
	return errors.Join(err, cmd.Wait())
}

// goFirst lets this thread, and those of the programs that it starts, run before all others on a processor. Root may do that.
func goFirst() error { return schedule(unix.SCHED_FIFO, 1) }

func schedule(policy, priority uint32) error {
	return unix.SchedSetAttr(0, &unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: policy, Priority: priority}, 0)
}

// prepare sets the random bytes and the clock of a program that has just started, and runs it until it has started its
// monitor, which stays stopped.
func prepare(pid int, seed uint64) (monitor int, err error) {
	var status syscall.WaitStatus
	if _, err := syscall.Wait4(pid, &status, 0, nil); err != nil {
		return 0, err
	}
	memory, err := os.OpenFile(fmt.Sprintf("/proc/%d/mem", pid), os.O_RDWR, 0)
	if err != nil {
		return 0, err
	}
	defer memory.Close()
	at, err := auxiliary(pid)
	if err == nil {
		err = errors.Join(setRandom(memory, at[randomBytes], seed), stopClock(memory, at[vdsoImage]))
	}
	if err != nil {
		return 0, err
	}
	if err := syscall.PtraceSetOptions(pid, syscall.PTRACE_O_TRACECLONE|unix.PTRACE_O_EXITKILL); err != nil {
		return 0, err
	}
	for signal := 0; ; signal = int(status.StopSignal()) {
		if err := syscall.PtraceCont(pid, signal); err != nil {
			return 0, err
		}
		if _, err := syscall.Wait4(pid, &status, syscall.WALL, nil); err != nil {
			return 0, err
		}
		if !status.Stopped() {
			return 0, fmt.Errorf("it ended at once: %v", status)
		}
		if status.TrapCause() == syscall.PTRACE_EVENT_CLONE {
			break
		}
	}
	id, err := syscall.PtraceGetEventMsg(pid)
	if err == nil {
		_, err = syscall.Wait4(int(id), &status, syscall.WALL, nil) //nolint:gosec // a thread
	}
	return int(id), err //nolint:gosec // a thread
}

// The values that are used here (linux/auxvec.h: AT_RANDOM, AT_SYSINFO_EHDR).
const randomBytes, vdsoImage = 25, 33

// auxiliary returns the values that the kernel has given to a program (getauxval(3)).
func auxiliary(pid int) (map[uint64]int64, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/auxv", pid))
	values := make(map[uint64]int64)
	for ; len(text) >= 16; text = text[16:] {
		values[binary.NativeEndian.Uint64(text)] = int64(binary.NativeEndian.Uint64(text[8:])) //nolint:gosec // an address
	}
	return values, err
}

func setRandom(memory *os.File, at int64, schedule uint64) error {
	var seed [32]byte
	binary.LittleEndian.PutUint64(seed[:], schedule)
	random := make([]byte, 16)
	_, _ = rand.NewChaCha8(seed).Read(random) // never fails
	_, err := memory.WriteAt(random, at)
	return err
}

// stopClock replaces the function in which a program reads the clock without a system call (vdso(7)). It then always gets
// the same time, in 2004.
func stopClock(memory *os.File, vdso int64) error {
	image := make([]byte, 16<<10)
	n, err := memory.ReadAt(image, vdso) // it ends early
	file, failed := elf.NewFile(bytes.NewReader(image[:n]))
	if failed != nil {
		return errors.Join(err, failed)
	}
	symbols, err := file.DynamicSymbols()
	for _, s := range symbols {
		if s.Name != "__vdso_clock_gettime" {
			continue
		}
		_, err := memory.WriteAt([]byte{
			0x48, 0xc7, 0x06, 0, 0, 0, 0x40, // movq $0x40000000, (%rsi): seconds
			0x48, 0xc7, 0x46, 0x08, 0, 0, 0, 0, // movq $0, 8(%rsi): nanoseconds
			0x31, 0xc0, // xorl %eax, %eax
			0xc3, // ret
		}, vdso+int64(s.Value)) //nolint:gosec // an offset
		return err
	}
	return errors.Join(err, errors.New("the kernel has no function that reads the clock"))
}
