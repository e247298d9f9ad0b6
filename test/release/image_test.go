package release_test

import (
	"bytes"
	"debug/buildinfo"
	"encoding/json"
	"io"
	"log"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"go.podman.io/image/v5/docker"
	containersimage "go.podman.io/image/v5/image"
	"go.podman.io/image/v5/signature"
	"go.podman.io/image/v5/types"

	"github.com/clusterextensions/operator-controller/test/docs"
)

// released is the image of the release, from its archive.
type released struct {
	index      v1.ImageIndex
	descriptor v1.Descriptor
}

func openReleased(t *testing.T) released {
	t.Helper()
	dir := t.TempDir()
	command(t, dir, "tar", "-xf", file(t, "*_image.tar"), "-C", dir)
	top, err := layout.ImageIndexFromPath(dir)
	if err != nil {
		t.Fatal(err)
	}
	manifest, err := top.IndexManifest()
	if err != nil || len(manifest.Manifests) != 1 {
		t.Fatalf("the archive has %v, %v, want one image", manifest, err)
	}
	index, err := top.ImageIndex(manifest.Manifests[0].Digest)
	if err != nil {
		t.Fatal(err)
	}
	return released{index: index, descriptor: manifest.Manifests[0]}
}

// images are those for each platform.
func (r released) images(t *testing.T) map[string]v1.Image {
	t.Helper()
	manifest, err := r.index.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]v1.Image{}
	for _, descriptor := range manifest.Manifests {
		if found[descriptor.Platform.String()], err = r.index.Image(descriptor.Digest); err != nil {
			t.Fatal(err)
		}
	}
	return found
}

// maxImageBytes is what the image for one platform may take, compressed.
const maxImageBytes = 40_000_000

// The image has a program for each platform, with a user that is not root, is small, and
// its SBOM lists what is in it.
func TestImage(t *testing.T) {
	t.Parallel()
	needRelease(t)
	var platforms []string
	for platform, image := range openReleased(t).images(t) {
		platforms = append(platforms, platform)
		config, err := image.ConfigFile()
		if err != nil {
			t.Fatal(err)
		}
		if user, _, _ := strings.Cut(config.Config.User, ":"); user != "65532" {
			t.Errorf("%s runs as %q", platform, config.Config.User)
		}
		if size := compressed(t, image); size > maxImageBytes {
			t.Errorf("%s has %d bytes, more than %d", platform, size, maxImageBytes)
		}
		binary := inImage(t, image, config.Config.Entrypoint[0])
		built, err := buildinfo.Read(bytes.NewReader(binary))
		if err != nil {
			t.Fatal(err)
		}
		sbom := "*_image-" + strings.ReplaceAll(platform, "/", "-") + ".spdx.json"
		wantModules(t, built, packages(t, file(t, sbom)))
		if platform == runtime.GOOS+"/"+runtime.GOARCH {
			wantVersion(t, binary)
		}
	}
	slices.Sort(platforms)
	if diff := cmp.Diff([]string{"linux/amd64", "linux/arm64"}, platforms); diff != "" {
		t.Errorf("platforms (-want +got):\n%s", diff)
	}
}

func compressed(t *testing.T, image v1.Image) int64 {
	t.Helper()
	layers, err := image.Layers()
	if err != nil {
		t.Fatal(err)
	}
	total := int64(0)
	for _, layer := range layers {
		size, err := layer.Size()
		if err != nil {
			t.Fatal(err)
		}
		total += size
	}
	return total
}

func inImage(t *testing.T, image v1.Image, path string) []byte {
	t.Helper()
	files := mutate.Extract(image)
	defer files.Close()
	content, ok := tarFiles(t, files)[strings.TrimPrefix(path, "/")]
	if !ok {
		t.Fatalf("the image has no %s", path)
	}
	return content
}

// What a page tells its readers to do works with this release, and finds what was
// tampered with. The image is signed as it is when it is published, in a registry here.
func TestDocumentedCommands(t *testing.T) {
	t.Parallel()
	needRelease(t)
	folder := t.TempDir()
	if err := os.CopyFS(folder, os.DirFS(*dist)); err != nil {
		t.Fatal(err)
	}
	image := publish(t)
	page := string(read(t, filepath.Join(root, "docs/verify-a-release.md")))
	blocks, err := docs.Blocks(page)
	if err != nil {
		t.Fatal(err)
	}
	var commands []string
	for _, block := range blocks {
		// test/signatures tests the policy on the page.
		if block.Language != "" {
			continue
		}
		for _, command := range docs.Commands(block) {
			commands = append(commands, command.Text)
			if output, err := shell(t, folder, image, command.Text); err != nil {
				t.Errorf("%s: %v\n%s", command.Text, err, output)
			}
		}
	}
	if len(commands) < 5 {
		t.Fatalf("the page has the commands %q, which are too few", commands)
	}
	for _, tampered := range []struct{ file, command string }{
		{"install.yaml", commands[1]},
		{"checksums.txt", commands[0]},
	} {
		content := read(t, filepath.Join(folder, tampered.file))
		content[len(content)/2] ^= 1
		if err := os.WriteFile(filepath.Join(folder, tampered.file), content, 0o600); err != nil {
			t.Fatal(err)
		}
		if output, err := shell(t, folder, image, tampered.command); err == nil {
			t.Errorf("with another %s, this succeeds: %s\n%s", tampered.file, tampered.command, output)
		}
	}
}

func shell(t *testing.T, dir, image, command string) (string, error) {
	t.Helper()
	run := exec.CommandContext(t.Context(), "bash", "-ec", command)
	run.Dir, run.Env = dir, append(os.Environ(), "IMAGE="+image)
	output, err := run.CombinedOutput()
	return string(output), err
}

// publish pushes the image to a registry, signs it and attaches its attestations there, as publishing
// does.
func publish(t *testing.T) string {
	t.Helper()
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	t.Cleanup(server.Close)
	repository := strings.TrimPrefix(server.URL, "http://") + "/operator-controller"
	tag, err := name.ParseReference(repository + ":" + version())
	if err != nil {
		t.Fatal(err)
	}
	image := openReleased(t)
	if err := remote.WriteIndex(tag, image.index, remote.WithContext(t.Context())); err != nil {
		t.Fatal(err)
	}
	reference := repository + "@" + image.descriptor.Digest.String()
	command(t, root, "hack/release/sign", "image", reference)
	dir := t.TempDir()
	command(t, dir, "tar", "-xf", file(t, "*_image.tar"), "-C", dir)
	command(t, root, "hack/release/attest", reference, dir, *dist)
	return reference
}

// The attestations name the commit, the image and the version, and the SBOM of each platform is the
// SBOM of the release.
func TestAttestations(t *testing.T) {
	t.Parallel()
	needRelease(t)
	image := publish(t)
	repository, digest, _ := strings.Cut(image, "@")
	statement := attested(t, image, "slsaprovenance1")
	commit := strings.TrimSpace(command(t, root, "git", "rev-parse", "HEAD"))
	for _, want := range []string{strings.TrimPrefix(digest, "sha256:"), commit, version()} {
		if !strings.Contains(string(statement), want) {
			t.Errorf("the provenance does not name %s: %s", want, statement)
		}
	}
	for platform, one := range openReleased(t).images(t) {
		digest, err := one.Digest()
		if err != nil {
			t.Fatal(err)
		}
		var got struct{ Predicate any }
		var want any
		sbom := read(t, file(t, "*_image-"+strings.ReplaceAll(platform, "/", "-")+".spdx.json"))
		for to, text := range map[any][]byte{&got: attested(t, repository+"@"+digest.String(), "spdxjson"), &want: sbom} {
			if err := json.Unmarshal(text, to); err != nil {
				t.Fatal(err)
			}
		}
		if diff := cmp.Diff(want, got.Predicate); diff != "" {
			t.Errorf("the SBOM of %s (-want +got):\n%s", platform, diff)
		}
	}
}

// attested returns the statement of the attestation of a type, which the key of the release signed.
func attested(t *testing.T, image, kind string) []byte {
	t.Helper()
	verify := exec.CommandContext(t.Context(), "cosign", "verify-attestation", "--key", file(t, "cosign.pub"), "--insecure-ignore-tlog", "--type", kind, image)
	output, err := verify.Output()
	if err != nil {
		t.Fatalf("%s: %v\n%s", verify, err, output)
	}
	var envelope struct {
		Payload []byte `json:"payload"`
	}
	if err := json.Unmarshal(output, &envelope); err != nil {
		t.Fatalf("%v\n%s", err, output)
	}
	return envelope.Payload
}

// Podman, CRI-O and the controller itself accept the image by the key of the release, and by
// no other.
func TestImageUnderPolicy(t *testing.T) {
	t.Parallel()
	needRelease(t)
	dir := t.TempDir()
	image := publish(t)
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("attached.yaml", "default-docker:\n  use-sigstore-attachments: true\n")
	command(t, dir, "env", "COSIGN_PASSWORD=", "cosign", "generate-key-pair", "--output-key-prefix", filepath.Join(dir, "other"))
	for key, want := range map[string]bool{file(t, "cosign.pub"): true, filepath.Join(dir, "other.pub"): false} {
		policy, err := signature.NewPolicyFromBytes([]byte(`{"default":[{"type":"sigstoreSigned","keyPath":"` + key +
			`","signedIdentity":{"type":"matchRepository"}}]}`))
		if err != nil {
			t.Fatal(err)
		}
		allowed, err := isAllowed(t, policy, image, &types.SystemContext{
			RegistriesDirPath: dir, DockerInsecureSkipTLSVerify: types.OptionalBoolTrue,
		})
		if allowed != want {
			t.Errorf("with the key %s, the image is allowed: %t, %v", key, allowed, err)
		}
	}
}

func isAllowed(t *testing.T, policy *signature.Policy, image string, system *types.SystemContext) (bool, error) {
	t.Helper()
	judge, err := signature.NewPolicyContext(policy)
	if err != nil {
		t.Fatal(err)
	}
	defer judge.Destroy()
	reference, err := docker.ParseReference("//" + image)
	if err != nil {
		t.Fatal(err)
	}
	source, err := reference.NewImageSource(t.Context(), system)
	if err != nil {
		t.Fatal(err)
	}
	defer source.Close()
	return judge.IsRunningImageAllowed(t.Context(), containersimage.UnparsedInstance(source, nil))
}
