package build

import (
	"os"
	"path/filepath"

	"agentrun.dev/e2e/cluster/internal/settings"
)

// A stamp is the key that a file in the cache was made from.
func stampPath(s settings.Settings, made string) string {
	return filepath.Join(s.Cache, "stamps", filepath.Base(made))
}

func isFresh(s settings.Settings, made, key string) bool {
	if _, err := os.Stat(made); err != nil {
		return false
	}
	text, err := os.ReadFile(stampPath(s, made))
	return err == nil && string(text) == key
}

func stamp(s settings.Settings, made, key string) error {
	path := stampPath(s, made)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, []byte(key), 0o644)
}
