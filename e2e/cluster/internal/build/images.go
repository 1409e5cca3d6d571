package build

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"agentrun.dev/e2e/cluster/internal/oci"
	"agentrun.dev/e2e/cluster/internal/settings"
)

// nonroot is the user of images that need no rights.
const nonroot = "65532"

// imageForm numbers the way images are made. Raise it when that changes.
const imageForm = "1"

// baseImage holds nothing but one program.
type baseImage struct {
	reference string
	user      string
	// program is the file it is made of, in the cache unless absolute.
	program string
	// fill lays out the root folder; without it the program is the entry point.
	fill func(program, root string) error
}

func baseImages() []baseImage {
	return []baseImage{
		{reference: "localhost/busybox:1", user: nonroot, program: "/bin/busybox", fill: layBusybox},
		{reference: "localhost/kube-network-policies:1", user: "0", program: "kube-network-policies"},
		{reference: "localhost/local-path-provisioner:1", user: "0", program: "local-path-provisioner"},
		{reference: "localhost/pause:1", user: nonroot, program: "pause"},
	}
}

func (i baseImage) name() string {
	name, _, _ := strings.Cut(strings.TrimPrefix(i.reference, "localhost/"), ":")
	return name
}

func (i baseImage) archive(s settings.Settings) string {
	return filepath.Join(s.Images(), i.name()+".tar")
}

func makeImage(s settings.Settings, image baseImage, say reporter) error {
	source := image.program
	if !filepath.IsAbs(source) {
		source = s.Program(source)
	}
	key, err := imageKey(image, source)
	if err != nil {
		return err
	}
	archive := image.archive(s)
	if isFresh(s, archive, key) {
		return nil
	}
	say("image %s", image.reference)
	if err := os.MkdirAll(s.Images(), 0o755); err != nil {
		return err
	}
	root, err := os.MkdirTemp(s.Cache, ".root-*")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(root) }()
	content := oci.Image{Reference: image.reference, User: image.user}
	fill := image.fill
	if fill == nil {
		content.Entrypoint = []string{"/" + image.name()}
		fill = func(program, root string) error { return copyProgram(program, filepath.Join(root, image.name())) }
	}
	if err := fill(source, root); err != nil {
		return err
	}
	if _, err := oci.Write(archive, root, content); err != nil {
		return err
	}
	return stamp(s, archive, key)
}

func imageKey(image baseImage, source string) (string, error) {
	file, err := os.Open(source)
	if err != nil {
		return "", err
	}
	defer func() { _ = file.Close() }()
	sum := sha256.New()
	_, _ = fmt.Fprintln(sum, imageForm, image.reference, image.user)
	if _, err := io.Copy(sum, file); err != nil {
		return "", err
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}

func copyProgram(from, to string) error {
	data, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	return os.WriteFile(to, data, 0o755)
}

// layBusybox makes a small system: every applet, a user file and a folder for everyone.
func layBusybox(program, root string) error {
	bin := filepath.Join(root, "bin")
	if err := copyProgram(program, filepath.Join(bin, "busybox")); err != nil {
		return err
	}
	applets, err := exec.Command(program, "--list").Output()
	if err != nil {
		return fmt.Errorf("%s --list: %w", program, err)
	}
	for _, applet := range strings.Fields(string(applets)) {
		if applet == "busybox" {
			continue
		}
		if err := os.Symlink("busybox", filepath.Join(bin, applet)); err != nil {
			return err
		}
	}
	users := "root:x:0:0:root:/:/bin/sh\nnonroot:x:" + nonroot + ":" + nonroot + ":nonroot:/:/bin/sh\n"
	if err := os.Mkdir(filepath.Join(root, "etc"), 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(root, "etc", "passwd"), []byte(users), 0o644); err != nil {
		return err
	}
	if err := os.Mkdir(filepath.Join(root, "tmp"), 0o755); err != nil {
		return err
	}
	return os.Chmod(filepath.Join(root, "tmp"), os.ModeSticky|0o777)
}
