package lock

import (
	"os"
	"path/filepath"
	"testing"
)

func TestASecondHolderIsRefusedUntilTheFirstReleases(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.lock")
	first, err := File(path, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := File(path, 0); err == nil {
		t.Fatal("locked twice")
	}
	first.Release()
	second, err := File(path, 0)
	if err != nil {
		t.Fatal(err)
	}
	second.Remove()
	if _, err := os.Stat(path); !os.IsNotExist(err) {
		t.Fatalf("the file is left: %v", err)
	}
}

func TestALockOnARemovedFileIsTakenAgainOnTheNewOne(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.lock")
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	if !isStill(file, path) {
		t.Error("the file does not recognise itself")
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if isStill(file, path) {
		t.Error("a removed file still guards its path")
	}
}
