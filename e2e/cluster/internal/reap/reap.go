// Package reap starts and reaps processes for a program that is PID 1 of its namespace.
//
// Orphans of every container end up as children of PID 1. One loop therefore waits for all
// children, and os/exec must not be used beside it: each would take the other's results.
package reap

import (
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"sync"
	"syscall"
)

// Table knows the processes that were started through it.
type Table struct {
	mutex    sync.Mutex
	children map[int]*Child
}

// Child is a started process.
type Child struct {
	// Done is closed when the process has ended.
	Done   chan struct{}
	status syscall.WaitStatus
}

// New begins to reap. A process makes one table at most.
func New() *Table {
	t := &Table{children: map[int]*Child{}}
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGCHLD)
	go func() {
		for range signals {
			t.reap()
		}
	}()
	return t
}

// reap collects all children that have ended: signals of several may arrive as one.
func (t *Table) reap() {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	for {
		var status syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &status, syscall.WNOHANG, nil)
		if err == syscall.EINTR {
			continue
		}
		if err != nil || pid <= 0 {
			return
		}
		if child, known := t.children[pid]; known {
			delete(t.children, pid)
			child.status = status
			close(child.Done)
		}
	}
}

// Start runs a program with its output going to a file.
func (t *Table) Start(output *os.File, name string, arguments ...string) (*Child, error) {
	path, err := exec.LookPath(name)
	if err != nil {
		return nil, err
	}
	null, err := os.Open(os.DevNull)
	if err != nil {
		return nil, err
	}
	defer func() { _ = null.Close() }()
	attributes := &syscall.ProcAttr{
		Dir:   "/",
		Env:   os.Environ(),
		Files: []uintptr{null.Fd(), output.Fd(), output.Fd()},
	}
	// Locked over the start, so that the process cannot be reaped before it is known.
	t.mutex.Lock()
	defer t.mutex.Unlock()
	pid, err := syscall.ForkExec(path, append([]string{name}, arguments...), attributes)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	child := &Child{Done: make(chan struct{})}
	t.children[pid] = child
	return child, nil
}

// Ended tells whether the process has ended.
func (c *Child) Ended() bool {
	select {
	case <-c.Done:
		return true
	default:
		return false
	}
}

// Wait waits for the end. The error says how it ended if not with exit status 0.
func (c *Child) Wait() error {
	<-c.Done
	if c.status.Exited() && c.status.ExitStatus() == 0 {
		return nil
	}
	return fmt.Errorf("ended with %s", c.Ending())
}

// Ending says in words how the process ended. Only after Done.
func (c *Child) Ending() string {
	if c.status.Signaled() {
		return c.status.Signal().String()
	}
	return fmt.Sprintf("exit status %d", c.status.ExitStatus())
}
