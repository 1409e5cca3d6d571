// Package lock keeps two runs of the program from working on the same thing at once.
package lock

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// Lock is held until Release, or until the process ends.
type Lock struct{ file *os.File }

// Folder locks an existing folder that many clusters share. It leaves no file behind.
func Folder(path string, patience time.Duration) (*Lock, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	if err := acquire(file, patience); err != nil {
		return nil, err
	}
	return &Lock{file: file}, nil
}

// File locks a file of the caller's own, which it makes.
func File(path string, patience time.Duration) (*Lock, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, err
	}
	for {
		file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
		if err != nil {
			return nil, err
		}
		if err := acquire(file, patience); err != nil {
			return nil, err
		}
		// The holder before may have removed the file: then this lock guards nothing.
		if isStill(file, path) {
			return &Lock{file: file}, nil
		}
		_ = file.Close()
	}
}

func isStill(file *os.File, path string) bool {
	mine, err := file.Stat()
	if err != nil {
		return false
	}
	there, err := os.Stat(path)
	return err == nil && os.SameFile(mine, there)
}

func acquire(file *os.File, patience time.Duration) error {
	deadline := time.Now().Add(patience)
	for {
		err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			return nil
		}
		if time.Now().After(deadline) {
			_ = file.Close()
			return fmt.Errorf("%s was locked by another run for %v: wait for it to end", file.Name(), patience)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// Release gives the lock back.
func (l *Lock) Release() { _ = l.file.Close() }

// Remove gives the lock back and removes its file.
func (l *Lock) Remove() {
	_ = os.Remove(l.file.Name())
	l.Release()
}
