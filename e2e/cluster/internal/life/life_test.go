package life

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"agentrun.dev/e2e/cluster/internal/node"
	"agentrun.dev/e2e/cluster/internal/settings"
)

func TestAFolderThatUpDidNotMakeIsLeftAlone(t *testing.T) {
	s := settings.Settings{State: t.TempDir()}
	precious := s.Path("precious")
	if err := os.WriteFile(precious, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := takeDown(s, everything); err == nil || !strings.Contains(err.Error(), "left alone") {
		t.Errorf("got %v", err)
	}
	if !pathExists(precious) {
		t.Error("it was removed")
	}
}

func TestAFailedUpKeepsItsLogsAndNothingElse(t *testing.T) {
	s := settings.Settings{State: filepath.Join(t.TempDir(), "no-such-cgroup")}
	if err := makeState(s); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{s.Log("etcd"), s.Path("ready")} {
		if err := os.WriteFile(path, []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := takeDown(s, allButLogs); err != nil {
		t.Fatal(err)
	}
	if !pathExists(s.Log("etcd")) || pathExists(s.Path("ready")) {
		t.Error("the logs are gone, or more than they is left")
	}
	if err := takeDown(s, everything); err != nil || pathExists(s.State) {
		t.Errorf("the next down leaves %s: %v", s.State, err)
	}
}

func TestFollowEndsWithWhatThePID1Says(t *testing.T) {
	step := `{"reached":{"name":"` + node.FoldersMounted + `","at":"2030-01-01T00:00:01Z"}}` + "\n"
	began := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	for stream, part := range map[string]string{
		step + `{"ready":true}`:                              "",
		step + `{"failed":{"part":"etcd","message":"gone"}}`: "etcd",
		step: "init",
	} {
		var out bytes.Buffer
		var steps []string
		err := follow(strings.NewReader(stream), began, &out, func(name string) { steps = append(steps, name) })
		failure := &node.Failure{}
		if errors.As(err, &failure); failure.Part != part || (err == nil) != (part == "") {
			t.Errorf("%s: got %v", stream, err)
		}
		if out.String() != "up:   1.0 s folders mounted\n" || !slices.Equal(steps, []string{node.FoldersMounted}) {
			t.Errorf("printed %q, called with %v", out.String(), steps)
		}
	}
}

func TestALogIsFoundByItsPartAndNoOtherPath(t *testing.T) {
	s := settings.Settings{State: t.TempDir()}
	if err := makeState(s); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(s.Log("etcd"), []byte("hello\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(s.Path("secret.log"), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := Logs(s, "etcd", &out); err != nil || out.String() != "hello\n" {
		t.Errorf("got %q, %v", out.String(), err)
	}
	if err := Logs(s, "../secret", &out); err == nil || !strings.Contains(err.Error(), "there is etcd") {
		t.Errorf("got %v", err)
	}
}

func TestTheLastValueOfAVariableCounts(t *testing.T) {
	if got := lastWins([]string{"A=1", "B=2", "A=3"}); !slices.Equal(got, []string{"B=2", "A=3"}) {
		t.Fatalf("got %v", got)
	}
}

func TestTailGivesTheLastLines(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	if err := os.WriteFile(path, []byte("a\nb\nc\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := tail(path, 2); got != "b\nc" {
		t.Fatalf("got %q", got)
	}
	if got := tail(path+"x", 2); got != "" {
		t.Fatalf("got %q", got)
	}
}
