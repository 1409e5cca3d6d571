package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	containerd "github.com/containerd/containerd/v2/client"
	"github.com/containerd/containerd/v2/core/images"
	"github.com/containerd/errdefs"
	"github.com/containerd/platforms"
	"github.com/distribution/reference"
	"google.golang.org/grpc"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// visibleWithin bounds how long the kubelet's view of images may lag behind the image store.
const visibleWithin = 20 * time.Second

// loadImages imports archives (OCI or docker) so that Pods can name their images by tag and by
// digest. Arguments: the address of containerd, then archives. It prints NAME@sha256:DIGEST of
// every image.
func loadImages(ctx context.Context, arguments []string) error {
	if len(arguments) < 2 {
		return errors.New("usage: image-loader SOCKET ARCHIVE...")
	}
	client, err := containerd.New(arguments[0], containerd.WithDefaultNamespace("k8s.io"))
	if err != nil {
		return err
	}
	defer func() { _ = client.Close() }()
	for _, archive := range arguments[1:] {
		if err := loadArchive(ctx, client, archive); err != nil {
			return fmt.Errorf("%s: %w", archive, err)
		}
	}
	return nil
}

func loadArchive(ctx context.Context, client *containerd.Client, archive string) error {
	file, err := os.Open(archive)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	imported, err := client.Import(ctx, file)
	if err != nil {
		return err
	}
	if len(imported) == 0 {
		return errors.New("holds no named image: give it a name and a tag when it is made")
	}
	for _, image := range imported {
		if err := containerd.NewImage(client, image).Unpack(ctx, ""); err != nil {
			return fmt.Errorf("unpacking %s: %w", image.Name, err)
		}
		name, err := nameByDigest(ctx, client, image)
		if err != nil {
			return fmt.Errorf("naming %s: %w", image.Name, err)
		}
		fmt.Println(name)
	}
	return nil
}

// nameByDigest adds the names a Pod may use: the full form of the tag, as the kubelet spells it,
// and the name by digest, which containerd itself adds to pulled images only. The name by the
// digest of the configuration is the one under which the kubelet mounts an image volume; containerd
// drops it when another image takes over the tag.
func nameByDigest(ctx context.Context, client *containerd.Client, image images.Image) (string, error) {
	tagged, err := reference.ParseDockerRef(image.Name)
	if err != nil {
		return "", err
	}
	byDigest, err := reference.WithDigest(reference.TrimNamed(tagged), image.Target.Digest)
	if err != nil {
		return "", err
	}
	config, err := image.Config(ctx, client.ContentStore(), platforms.Default())
	if err != nil {
		return "", err
	}
	if err := tag(ctx, client.ImageService(), image, config.Digest.String()); err != nil {
		return "", err
	}
	for _, name := range []string{tagged.String(), byDigest.String()} {
		if err := tag(ctx, client.ImageService(), image, name); err != nil {
			return "", err
		}
		if err := awaitVisible(ctx, client, name); err != nil {
			return "", err
		}
	}
	return byDigest.String(), nil
}

func tag(ctx context.Context, store images.Store, image images.Image, name string) error {
	image.Name = name
	_, err := store.Update(ctx, image, "target")
	if errdefs.IsNotFound(err) {
		_, err = store.Create(ctx, image)
	}
	return err
}

// awaitVisible returns when the kubelet would find the image. It learns of new names by events;
// a Pod that comes earlier waits ten seconds for its next try.
func awaitVisible(ctx context.Context, client *containerd.Client, name string) error {
	ctx, cancel := context.WithTimeout(ctx, visibleWithin)
	defer cancel()
	connection, usable := client.Conn().(grpc.ClientConnInterface)
	if !usable {
		return fmt.Errorf("the client's connection is %T, not of gRPC", client.Conn())
	}
	service := cri.NewImageServiceClient(connection)
	for {
		answer, err := service.ImageStatus(ctx, &cri.ImageStatusRequest{Image: &cri.ImageSpec{Image: name}})
		if err == nil && answer.GetImage() != nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("containerd has the image, but does not show it to the kubelet: %w", errors.Join(err, ctx.Err()))
		case <-time.After(20 * time.Millisecond):
		}
	}
}
