package main

import (
	"archive/tar"
	"bytes"
	"context"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// baseHost stands for the registry of the own base. The name is part of the image, so
// it is the same wherever the image is made. Names below .localhost are asked without TLS.
const baseHost = "base.localhost"

// nonRoot is the user and group that the controller runs as, as in other static bases.
const nonRoot = "65532"

// baseFiles are in the base. What needs root certificates has them built in;
// /etc/ssl/certs is there to mount others on.
var baseFiles = []struct {
	name, content string
	mode          int64
}{
	{"etc/", "", 0o755},
	{"etc/group", "root:x:0:\nnonroot:x:" + nonRoot + ":\n", 0o644},
	{"etc/passwd", "root:x:0:0:root:/:/sbin/nologin\n" +
		"nonroot:x:" + nonRoot + ":" + nonRoot + ":nonroot:/:/sbin/nologin\n", 0o644},
	{"etc/ssl/", "", 0o755},
	{"etc/ssl/certs/", "", 0o755},
	{"tmp/", "", 0o1777},
	{"var/", "", 0o755},
	{"var/cache/", "", 0o755},
}

// newBase makes the own base for each architecture that there are images for. It has
// the same digest every time.
func newBase() (v1.ImageIndex, error) {
	layer, err := baseLayer()
	if err != nil {
		return nil, err
	}
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for _, architecture := range []string{"amd64", "arm64"} {
		image, err := newBaseImage(architecture, layer)
		if err != nil {
			return nil, fmt.Errorf("for %s: %w", architecture, err)
		}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{Add: image, Descriptor: v1.Descriptor{
			Platform: &v1.Platform{OS: "linux", Architecture: architecture},
		}})
	}
	return index, nil
}

func newBaseImage(architecture string, layer v1.Layer) (v1.Image, error) {
	image := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	image, err := mutate.ConfigFile(image, &v1.ConfigFile{
		OS: "linux", Architecture: architecture, RootFS: v1.RootFS{Type: "layers"},
		Config: v1.Config{User: nonRoot + ":" + nonRoot, WorkingDir: "/"},
	})
	if err != nil {
		return nil, err
	}
	return mutate.AppendLayers(image, layer)
}

func baseLayer() (v1.Layer, error) {
	var files bytes.Buffer
	writer := tar.NewWriter(&files)
	for _, file := range baseFiles {
		header := &tar.Header{Name: file.name, Mode: file.mode, Size: int64(len(file.content)), ModTime: time.Unix(0, 0)}
		if err := writer.WriteHeader(header); err != nil {
			return nil, err
		}
		if _, err := io.WriteString(writer, file.content); err != nil {
			return nil, err
		}
	}
	if err := writer.Close(); err != nil {
		return nil, err
	}
	return tarball.LayerFromOpener(func() (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(files.Bytes())), nil
	}, tarball.WithMediaType(types.OCILayer))
}

// servedBase is a registry with the own base.
type servedBase struct {
	address string
	server  *http.Server
}

func (s *servedBase) Close() { _ = s.server.Close() }

// serveBase serves the own base, under any name, to who takes the address for an HTTP
// proxy. Requests for other hosts are passed on.
func serveBase(ctx context.Context) (*servedBase, error) {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	images := registry.New(registry.Logger(log.New(io.Discard, "", 0)))
	server := &http.Server{Handler: proxy(images, listener.Addr().String()), ReadHeaderTimeout: time.Minute}
	go func() { _ = server.Serve(listener) }()
	served := &servedBase{address: listener.Addr().String(), server: server}
	if err := served.fill(ctx); err != nil {
		served.Close()
		return nil, err
	}
	return served, nil
}

func proxy(images http.Handler, address string) http.Handler {
	forward := &httputil.ReverseProxy{Rewrite: func(*httputil.ProxyRequest) {}}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Host == baseHost || r.Host == address {
			images.ServeHTTP(w, r)
		} else {
			forward.ServeHTTP(w, r)
		}
	})
}

func (s *servedBase) fill(ctx context.Context) error {
	reference, err := name.ParseReference(s.address + "/static:latest")
	if err != nil {
		return err
	}
	base, err := newBase()
	if err != nil {
		return err
	}
	return remote.WriteIndex(reference, base, remote.WithContext(ctx))
}
