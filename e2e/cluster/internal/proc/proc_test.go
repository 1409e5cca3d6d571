package proc

import (
	"os"
	"os/exec"
	"runtime"
	"slices"
	"testing"
	"time"
)

func TestACommandWithBracketsDoesNotShiftTheFields(t *testing.T) {
	line := "7 (a) b (c)) S 1 7 7 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 1 0 4242 0 0\n"
	state, start, err := parseStat(line)
	if err != nil || state != 'S' || start != 4242 {
		t.Fatalf("got %c, %d, %v", state, start, err)
	}
}

func TestAShortStatFileIsRefused(t *testing.T) {
	if _, _, err := parseStat("7 (a) S 1"); err == nil {
		t.Fatal("accepted")
	}
}

func TestAProcessIsRecognisedAndAReusedPidIsNot(t *testing.T) {
	me, err := Identify(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	if !me.Alive() {
		t.Error("this process does not recognise itself")
	}
	if (Identity{PID: me.PID, Start: me.Start - 1}).Alive() {
		t.Error("a process with another start time was taken for this one")
	}
}

func TestAZombieIsGone(t *testing.T) {
	child := exec.Command("sleep", "60")
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	identity, err := Identify(child.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	identity.Kill()
	deadline := time.Now().Add(10 * time.Second)
	for identity.Alive() { // nobody reaps it before Wait below: what remains is a zombie
		if time.Now().After(deadline) {
			t.Fatal("a killed process that nobody reaped still counts as alive")
		}
		runtime.Gosched()
	}
	_ = child.Wait()
}

func TestMembersIncludeThisProcess(t *testing.T) {
	mine, err := NamespacesOf(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Contains(mine.Members(), os.Getpid()) {
		t.Fatal("not found in its own namespaces")
	}
	if members := (Namespaces{PID: "pid:[0]", Net: "net:[0]", Mount: "mnt:[0]"}).Members(); len(members) > 0 {
		t.Fatalf("namespaces that do not exist have members: %v", members)
	}
}

func TestOnlyMountsAtOrBelowTheFolderAreFound(t *testing.T) {
	table := "1 0 0:1 / / rw - ext4 a rw\n2 1 0:2 / /run/x rw - tmpfs b rw\n3 1 0:2 / /run/x/y rw - tmpfs b rw\n4 1 0:2 / /run/xy rw - tmpfs b rw\n"
	if found := mountsBelow(table, "/run/x"); !slices.Equal(found, []string{"/run/x", "/run/x/y"}) {
		t.Fatalf("got %v", found)
	}
}
