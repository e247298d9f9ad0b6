package signatures_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/random"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	policyv1alpha1 "github.com/clusterextensions/operator-controller/api/policy/v1alpha1"
	"github.com/clusterextensions/operator-controller/internal/policyfile"
	"github.com/clusterextensions/operator-controller/test/docs"
)

const (
	root = "../.."

	// releasePage shows the policy for the image of a release.
	releasePage = root + "/docs/verify-a-release.md"
	policyTitle = "image-policy.yaml"

	ourImage    = "ghcr.io/clusterextensions/operator-controller"
	ourWorkflow = "https://github.com/clusterextensions/operator-controller/.github/workflows/release.yml@refs/tags/v0.1.0"

	sbomType = "https://spdx.dev/Document"
)

// pagePolicy returns the policy that the page shows.
func pagePolicy(t *testing.T) string {
	t.Helper()
	page, err := os.ReadFile(releasePage)
	if err != nil {
		t.Fatal(err)
	}
	blocks, err := docs.Blocks(string(page))
	if err != nil {
		t.Fatal(err)
	}
	for _, block := range blocks {
		if docs.Title(block.Text) == policyTitle {
			return block.Text
		}
	}
	t.Fatalf("%s shows no %s", releasePage, policyTitle)
	return ""
}

// TestPolicyOfPage checks the policy on the page as kubectl extension policy check does. The Secret
// is the only part that the page does not contain.
func TestPolicyOfPage(t *testing.T) {
	t.Parallel()
	object := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(pagePolicy(t)), &object.Object); err != nil {
		t.Fatal(err)
	}
	file, err := policyfile.Read(t.Context(), []*unstructured.Unstructured{object})
	if err != nil {
		t.Fatal(err)
	}
	for _, problem := range file.Check(time.Now()) {
		if problem.Severity != policyfile.Note || !strings.Contains(problem.Message, "sigstore") {
			t.Errorf("the policy has a problem: %s", problem)
		}
	}
}

// release is an image in a registry, and the files that a release has about it.
type release struct {
	repository, layout, files, digest string
	platforms                         []string
}

// newRelease pushes an image for two platforms, and writes its SBOMs and its OpenVEX document.
func newRelease(t *testing.T, b *bench) release {
	t.Helper()
	r := release{repository: "clusterextensions/operator-controller", layout: t.TempDir(), files: t.TempDir()}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	var index v1.ImageIndex = empty.Index
	for _, architecture := range []string{"amd64", "arm64"} {
		one, err := random.Image(10, 1)
		must(err)
		digest, err := one.Digest()
		must(err)
		r.platforms = append(r.platforms, digest.String())
		index = mutate.AppendManifests(index, mutate.IndexAddendum{Add: one, Descriptor: v1.Descriptor{
			Platform: &v1.Platform{OS: "linux", Architecture: architecture},
		}})
		write(t, filepath.Join(r.files, "operator-controller_0.1.0_image-linux-"+architecture+".spdx.json"), spdx(architecture))
	}
	write(t, filepath.Join(r.files, "operator-controller_0.1.0_image-index.spdx.json"), spdx("index"))
	write(t, filepath.Join(r.files, "operator-controller_0.1.0.openvex.json"), `{"@context": "https://openvex.dev/ns/v0.2.0", "@id": "https://vex.test/1",
		"author": "test", "timestamp": "2026-01-01T00:00:00Z", "version": 1, "statements": [
		{"vulnerability": {"name": "GO-0000-0001"}, "products": [{"@id": "pkg:golang/a.test/a@v1"}], "status": "not_affected", "justification": "vulnerable_code_not_present"}]}`)
	path, err := layout.Write(r.layout, empty.Index)
	must(err)
	must(path.AppendIndex(index))
	digest, err := index.Digest()
	must(err)
	r.digest = digest.String()
	tag, err := name.ParseReference(b.registry.Host() + "/" + r.repository + ":v0.1.0")
	must(err)
	must(remote.WriteIndex(tag, index, remote.WithContext(t.Context())))
	return r
}

func spdx(name string) string {
	return `{"spdxVersion": "SPDX-2.3", "dataLicense": "CC0-1.0", "SPDXID": "SPDXRef-DOCUMENT", "name": "` + name + `",
		"documentNamespace": "https://spdx.test/` + name + `", "creationInfo": {"created": "2026-01-01T00:00:00Z", "creators": ["Tool: test"]}, "packages": []}`
}

// TestReleaseImage attaches signatures and attestations as a release does. cosign itself and the
// policy on the page, with a key, accept the image.
func TestReleaseImage(t *testing.T) {
	t.Parallel()
	needCosign(t)
	for kind, options := range map[string][]registry.Option{"tag": nil, "api": {registry.WithReferrersSupport(true)}} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, buildVerifier(t), nil, options...)
			r := newRelease(t, b)
			cosign(t, b.home, "generate-key-pair", "--output-key-prefix", filepath.Join(b.home, "release"))
			public, err := os.ReadFile(filepath.Join(b.home, "release.pub"))
			if err != nil {
				t.Fatal(err)
			}
			policy := byKeyOnPage(t, string(public))
			reference := b.registry.Host() + "/" + r.repository + "@" + r.digest
			b.script(t, "sign", "image", reference)
			if got := b.verifyReference(t, "registry.test/"+r.repository+"@"+r.digest, policy, b.conf); got.Outcome != "refused" ||
				!strings.Contains(strings.Join(got.Verdict.Refusals, "\n"), provenance) {
				t.Errorf("without attestations, the image is not refused: %+v", got)
			}
			b.script(t, "attest", reference, r.layout, r.files)
			if got := b.verifyReference(t, "registry.test/"+r.repository+"@"+r.digest, policy, b.conf); got.Outcome != "accepted" {
				t.Errorf("the image is not accepted: %+v", got)
			}

			made := b.attested(t, reference, "slsaprovenance1", provenance)
			commit, err := exec.CommandContext(t.Context(), "git", "rev-parse", "HEAD").Output()
			if err != nil {
				t.Fatal(err)
			}
			if text := string(made); !strings.Contains(text, strings.TrimSpace(string(commit))) || !strings.Contains(text, strings.TrimPrefix(r.digest, "sha256:")) {
				t.Errorf("the provenance names neither the commit nor the image: %s", text)
			}
			b.attested(t, reference, "openvex", "https://openvex.dev/ns")
			for digest, want := range map[string]string{r.digest: "index", r.platforms[0]: "amd64", r.platforms[1]: "arm64"} {
				if text := string(b.attested(t, b.registry.Host()+"/"+r.repository+"@"+digest, "spdxjson", sbomType)); !strings.Contains(text, "https://spdx.test/"+want) {
					t.Errorf("the SBOM of %s is %s", want, text)
				}
			}
		})
	}
}

// byKeyOnPage returns the policy on the page, for the registry of the test and with a key in the
// place of the workflow.
func byKeyOnPage(t *testing.T, public string) string {
	t.Helper()
	policy := policyv1alpha1.ImagePolicy{}
	if err := yaml.UnmarshalStrict([]byte(pagePolicy(t)), &policy); err != nil {
		t.Fatal(err)
	}
	if len(policy.Spec.Attestations) != 2 {
		t.Errorf("the policy on the page requires the attestations %v, want provenance and SBOM", policy.Spec.Attestations)
	}
	key := byKey(public)
	var types []string
	for _, one := range policy.Spec.Attestations {
		types = append(types, one.PredicateType)
	}
	return key.policy(t, types...)
}

// TestPolicyOfWorkflow signs as the release workflow, by a Sigstore of the test: the policy on the page
// accepts the image as it stands, and refuses an image that another workflow has signed.
func TestPolicyOfWorkflow(t *testing.T) {
	t.Parallel()
	needCosign(t)
	b := newBench(t, buildVerifier(t), nil)
	conf := filepath.Join(b.home, "ours.conf")
	if err := b.registry.WriteRegistriesConf(conf, "ghcr.io"); err != nil {
		t.Fatal(err)
	}
	for by, accepted := range map[string]bool{
		ourWorkflow: true,
		strings.Replace(ourWorkflow, "release.yml@refs/tags/v0.1.0", "release.yml@refs/heads/main", 1): false,
		strings.Replace(ourWorkflow, "clusterextensions/", "mallory/", 1):                              false,
	} {
		signer := newKeyless(t, t.TempDir(), by)
		secret, err := yaml.Marshal(map[string]any{
			"apiVersion": "v1", "kind": "Secret", "metadata": map[string]any{"name": "sigstore"}, "stringData": signer.trusted.secret,
		})
		if err != nil {
			t.Fatal(err)
		}
		r := newRelease(t, b)
		reference := b.registry.Host() + "/" + r.repository + "@" + r.digest
		b.cosign(t, append(append([]string{"sign"}, signer.flags("new")...), reference)...)
		for kind, predicate := range map[string]string{cosignType: predicateFile(t), "spdxjson": filepath.Join(r.files, "operator-controller_0.1.0_image-index.spdx.json")} {
			b.cosign(t, append(append([]string{"attest", "--type", kind, "--predicate", predicate}, signer.flags("new")...), reference)...)
		}
		if got := b.verifyReference(t, ourImage+"@"+r.digest, pagePolicy(t)+"\n---\n"+string(secret), conf); (got.Outcome == "accepted") != accepted {
			t.Errorf("signed by %s: %+v", by, got)
		}
	}
}

func predicateFile(t *testing.T) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "predicate.json")
	write(t, file, `{"buildDefinition": {"buildType": "https://build.test", "externalParameters": {}}, "runDetails": {"builder": {"id": "https://build.test"}}}`)
	return file
}

// script runs a script of hack/release with the key of the bench.
func (b *bench) script(t *testing.T, script string, args ...string) {
	t.Helper()
	command := exec.CommandContext(t.Context(), filepath.Join(root, "hack/release", script), args...)
	command.Dir = root
	command.Path = filepath.Join("hack/release", script)
	command.Env = append(os.Environ(), "PATH="+filepath.Dir(cosignPath(t))+":"+os.Getenv("PATH"),
		"COSIGN_KEY="+filepath.Join(b.home, "release.key"), "COSIGN_PASSWORD=", "VERSION=v0.1.0", "GITHUB_ACTIONS=")
	if output, err := command.CombinedOutput(); err != nil {
		t.Fatalf("%s %q: %v\n%s", script, args, err, output)
	}
}

// attested verifies the attestation of a type with cosign, and returns its statement.
func (b *bench) attested(t *testing.T, reference, kind, predicateType string) []byte {
	t.Helper()
	command := exec.CommandContext(t.Context(), cosignPath(t), "verify-attestation", "--key", filepath.Join(b.home, "release.pub"),
		"--insecure-ignore-tlog", "--type", kind, reference)
	command.Env = []string{"HOME=" + b.home, "DOCKER_CONFIG=" + b.home, "TUF_ROOT=" + b.home}
	output, err := command.Output()
	if err != nil {
		t.Fatalf("%s: %v\n%s", command, err, output)
	}
	var envelope struct {
		Payload []byte `json:"payload"`
	}
	var statement struct {
		PredicateType string `json:"predicateType"`
	}
	if err := json.Unmarshal(output, &envelope); err != nil {
		t.Fatalf("%v\n%s", err, output)
	}
	if err := json.Unmarshal(envelope.Payload, &statement); err != nil || !strings.HasPrefix(statement.PredicateType, predicateType) {
		t.Errorf("the attestation has the type %q, %v, want %q", statement.PredicateType, err, predicateType)
	}
	return envelope.Payload
}
