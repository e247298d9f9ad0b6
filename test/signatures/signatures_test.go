// Package signatures_test has cosign itself sign images, and the program verify them that people
// run: so that both sides of a signature are not written here. Sigstore, whom cosign asks for what
// is signed without a key, is that of the tests.
package signatures_test

import (
	"encoding/json"
	"flag"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-containerregistry/pkg/registry"

	"github.com/clusterextensions/operator-controller/internal/testkit"
	"github.com/clusterextensions/operator-controller/internal/testkit/imagetest"
)

var (
	cosignProgram = flag.String("cosign", "", "cosign, which is to sign")
	update        = flag.Bool("update", false, "write what cosign pushes to the test data of internal/image")
)

// provenance is what attestations of these tests are, and cosignType how cosign calls it.
const (
	provenance = "https://slsa.dev/provenance/v1"
	cosignType = "slsaprovenance1"
)

// formats are the flags by which cosign makes a signature of that form.
var formats = map[string][]string{
	"old": {"--new-bundle-format=false"},
	"new": nil,
}

// registries are of each kind: with and without the API for referrers.
var registries = map[string][]registry.Option{"tag": nil, "api": {registry.WithReferrersSupport(true)}}

func needCosign(t *testing.T) {
	t.Helper()
	if *cosignProgram == "" {
		t.Skip("takes cosign, which is built in minutes: make test-long SUITE=signatures runs it")
	}
}

// cosignPath returns the absolute path of cosign, because commands run in other folders.
func cosignPath(t *testing.T) string {
	t.Helper()
	path, err := filepath.Abs(*cosignProgram)
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// bench is a registry, who signs what is in it, and the program that verifies it.
type bench struct {
	registry *testkit.Registry
	home     string // of cosign, which is to find nothing there
	verifier string
	conf     string // how the verifier reads from the registry
	signers  map[string]signer
}

// newBench starts a registry. The signers and the verifier are those of all of them.
func newBench(t *testing.T, verifier string, signers map[string]signer, options ...registry.Option) *bench {
	t.Helper()
	started, err := testkit.StartRegistry(options...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = started.Close() })
	b := &bench{registry: started, home: t.TempDir(), verifier: verifier, signers: signers}
	b.conf = filepath.Join(b.home, "registries.conf")
	if err := started.WriteRegistriesConf(b.conf, "registry.test"); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(b.home, "policy.json"), imagetest.AcceptAnything)
	return b
}

// push makes an image of its own and returns its digest.
func (b *bench) push(t *testing.T, content string) string {
	t.Helper()
	pushed, err := b.registry.Push(t.Context(), "pkg:v1", fstest.MapFS{"manifests/x": {Data: []byte(content)}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return pushed
}

// sign has cosign sign an image.
func (b *bench) sign(t *testing.T, format string, by signer, image string, more ...string) {
	t.Helper()
	if format == "old" {
		// What is signed names the image as cosign is told to call it, and else by where it is.
		more = append(more, "--sign-container-identity=registry.test/pkg")
	}
	b.cosign(t, slices.Concat([]string{"sign"}, formats[format], by.flags(format), more, []string{b.registry.Host() + "/pkg@" + image})...)
}

// attest has cosign state something about an image.
func (b *bench) attest(t *testing.T, format string, by signer, image string) {
	t.Helper()
	predicate := filepath.Join(t.TempDir(), "predicate.json")
	write(t, predicate, `{"buildDefinition": {"buildType": "https://build.test", "externalParameters": {}}, "runDetails": {"builder": {"id": "https://build.test"}}}`)
	b.cosign(t, slices.Concat([]string{"attest", "--type", cosignType, "--predicate", predicate}, formats[format], by.flags(format),
		[]string{b.registry.Host() + "/pkg@" + image})...)
}

func (b *bench) cosign(t *testing.T, args ...string) { cosign(t, b.home, append(args, "--yes")...) }

// cosign runs cosign with nothing of this machine.
func cosign(t *testing.T, home string, args ...string) {
	t.Helper()
	command := exec.CommandContext(t.Context(), cosignPath(t), args...)
	command.Dir = home
	command.Env = []string{"HOME=" + home, "PATH=" + os.Getenv("PATH"), "DOCKER_CONFIG=" + home, "TUF_ROOT=" + home, "COSIGN_PASSWORD="}
	if output, err := command.CombinedOutput(); err != nil {
		t.Fatalf("cosign %s: %v\n%s", strings.Join(args, " "), err, output)
	}
}

// verdict is what the verifier says of an image.
type verdict struct {
	Outcome string `json:"outcome"`
	Verdict struct {
		Signers  []string `json:"signers"`
		Refusals []string `json:"refusals"`
	} `json:"verdict"`
	Error string `json:"error"`
}

// verify asks the program that people run.
func (b *bench) verify(t *testing.T, image, policy string) verdict {
	t.Helper()
	return b.verifyReference(t, "registry.test/pkg@"+image, policy, b.conf)
}

// verifyReference verifies an image by its full name, with a file that says where images are read.
func (b *bench) verifyReference(t *testing.T, image, policy, conf string) verdict {
	t.Helper()
	file := filepath.Join(t.TempDir(), "policy.yaml")
	write(t, file, policy)
	command := exec.CommandContext(t.Context(), b.verifier, "verify", image,
		"--policy", file, "--signature-policy", filepath.Join(b.home, "policy.json"), "-o", "json")
	command.Env = []string{"HOME=" + b.home, "CONTAINERS_REGISTRIES_CONF=" + conf, "DOCKER_CONFIG=" + b.home}
	output, err := command.Output()
	var all struct {
		Images []verdict `json:"images"`
	}
	if malformed := json.Unmarshal(output, &all); malformed != nil || len(all.Images) != 1 {
		t.Fatalf("verify: %v\n%s", err, output)
	}
	if accepted := all.Images[0].Outcome == "accepted"; accepted != (err == nil) {
		t.Errorf("it ends with %v, and says %+v", err, all.Images[0])
	}
	return all.Images[0]
}

func (b *bench) accepts(t *testing.T, image, policy, signer string) {
	t.Helper()
	got := b.verify(t, image, policy)
	if got.Outcome != "accepted" || len(got.Verdict.Signers) != 1 || !strings.Contains(got.Verdict.Signers[0], signer) {
		t.Errorf("it is not accepted as signed by %q: %+v", signer, got)
	}
}

func (b *bench) refuses(t *testing.T, image, policy, reason string) {
	t.Helper()
	got := b.verify(t, image, policy)
	if got.Outcome != "refused" || len(got.Verdict.Refusals) != 1 || !strings.Contains(got.Verdict.Refusals[0], reason) {
		t.Errorf("it is not refused because %q: %+v", reason, got)
	}
}

// TestSignatures: what cosign has signed is accepted by a policy that names the signer, in each
// form and from each kind of registry, and not by one that names somebody else.
func TestSignatures(t *testing.T) {
	t.Parallel()
	needCosign(t)
	verifier, signers := buildVerifier(t), newSigners(t)
	for kind, options := range registries {
		for format := range formats {
			if kind == "api" && format == "old" {
				continue // tags are read alike
			}
			b := newBench(t, verifier, signers, options...)
			for name, by := range signers {
				t.Run(kind+"/"+format+"/"+name, func(t *testing.T) {
					t.Parallel()
					image := b.push(t, format+name)
					b.refuses(t, image, by.policy(t), "it has no signature")
					b.sign(t, format, by, image)
					b.accepts(t, image, by.policy(t), by.called)
					b.refuses(t, image, by.stranger(t), by.refusal)
					b.refuses(t, image, by.policy(t, provenance), `the attestation "`+provenance+`" is demanded: there is none`)
					b.attest(t, format, by, image)
					b.accepts(t, image, by.policy(t, provenance), by.called)
					b.refuses(t, b.push(t, "another image than "+format+name), by.policy(t), "it has no signature")
				})
			}
		}
	}
}

// TestSeveralSignatures: the signature that counts is found among others, in both forms at once,
// and an attestation is no signature.
func TestSeveralSignatures(t *testing.T) {
	t.Parallel()
	needCosign(t)
	verifier, signers := buildVerifier(t), newSigners(t)
	for kind, options := range registries {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, verifier, signers, options...)
			image := b.push(t, "several")
			ours, other, keyless := signers["p256"], signers["rsa"], signers["keyless"]
			for format := range maps.Keys(formats) {
				b.sign(t, format, other, image)
				b.attest(t, format, ours, image)
			}
			b.refuses(t, image, ours.policy(t), "it is not signed with its key")
			b.refuses(t, image, ours.policy(t, provenance), "it is not signed with its key")
			b.refuses(t, image, other.policy(t, provenance), "is demanded: authority")
			b.sign(t, "old", ours, image)
			b.sign(t, "new", keyless, image)
			b.accepts(t, image, ours.policy(t, provenance), ours.called)
			b.accepts(t, image, other.policy(t), other.called)
			b.accepts(t, image, keyless.policy(t), keyless.called)
		})
	}
}

// buildVerifier makes the command that people run, as it is released.
func buildVerifier(t *testing.T) string {
	t.Helper()
	binary := filepath.Join(t.TempDir(), "kubectl-extension")
	command := exec.CommandContext(t.Context(), "go", "build", "-trimpath", "-ldflags=-s -w", "-tags=containers_image_openpgp",
		"-o", binary, "./cmd/kubectl-extension")
	command.Dir = "../.." // the main module
	command.Env = append(os.Environ(), "CGO_ENABLED=0")
	if output, err := command.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, output)
	}
	return binary
}

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}
