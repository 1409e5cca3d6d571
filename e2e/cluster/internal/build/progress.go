package build

import (
	"bytes"
	"strings"
	"sync"
	"time"
)

// progress reads what `go build -v` prints: a line for each package it compiles, and what goes
// wrong.
type progress struct {
	began time.Time
	name  string
	say   reporter

	mutex    sync.Mutex
	partial  []byte
	compiled int
	last     string
	errors   []string
}

func newProgress(began time.Time, name string, say reporter) *progress {
	return &progress{began: began, name: name, say: say}
}

// Write takes output as it comes, in pieces of any size.
func (p *progress) Write(data []byte) (int, error) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.partial = append(p.partial, data...)
	for {
		line, rest, complete := bytes.Cut(p.partial, []byte("\n"))
		if !complete {
			return len(data), nil
		}
		p.partial = rest
		p.take(string(line))
	}
}

func (p *progress) take(line string) {
	switch {
	case strings.HasPrefix(line, "go: downloading "):
		p.last = strings.TrimPrefix(line, "go: ")
	case isPackage(line):
		p.compiled++
		p.last = line
	default:
		p.errors = append(p.errors, line)
	}
}

// isPackage tells an import path from a message.
func isPackage(line string) bool {
	return line != "" && !strings.ContainsAny(line, " :#\t")
}

// complaints are the last lines that are no progress.
func (p *progress) complaints() string {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	return lastLines(strings.Join(append(p.errors, string(p.partial)), "\n"), 25)
}

// everyFifteenSeconds reports until the returned function is called.
func (p *progress) everyFifteenSeconds() (stop func()) {
	done := make(chan struct{})
	go func() {
		ticker := time.NewTicker(15 * time.Second)
		defer ticker.Stop()
		for {
			select {
			case <-done:
				return
			case <-ticker.C:
				p.report()
			}
		}
	}()
	return func() { close(done) }
}

func (p *progress) report() {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	at := p.last
	if at == "" {
		at = "nothing new, reading the cache"
	}
	p.say("%s: %v, %d packages compiled, at %s", p.name, time.Since(p.began).Round(time.Second), p.compiled, at)
}
