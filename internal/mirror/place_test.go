package mirror_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/clusterextensions/operator-controller/internal/image"
	"github.com/clusterextensions/operator-controller/internal/mirror"
)

const place = mirror.Place("mirror.example:5000/olm")

var refs = []string{
	"quay.io/acme/x:v1",
	"quay.io/acme/y@sha256:" + strings.Repeat("1", 64),
	"registry.test:443/single@sha256:" + strings.Repeat("2", 64),
	"docker.io/library/nginx:latest",
}

// Whatever is copied is found where it is, by the file that is printed.
func TestPlace(t *testing.T) {
	t.Parallel()
	mappings, err := place.Mappings(refs)
	if err != nil {
		t.Fatal(err)
	}
	conf, err := mirror.RegistriesConf(mappings, true)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "registries.conf")
	if err := os.WriteFile(file, []byte(conf), 0o600); err != nil {
		t.Fatal(err)
	}
	seen := map[string]string{}
	for _, ref := range refs {
		repository, tag, err := place.Repository(ref)
		if err != nil {
			t.Fatal(err)
		}
		if other := seen[repository]; other != "" {
			t.Errorf("%s and %s come to one repository", ref, other)
		}
		seen[repository] = ref
		endpoints, err := image.Endpoints(file, ref)
		if err != nil {
			t.Fatal(err)
		}
		want := repository + ":" + tag
		if _, digest, pinned := strings.Cut(ref, "@"); pinned {
			want = repository + "@" + digest
		}
		if len(endpoints) != 2 || endpoints[0].Ref != want || !endpoints[0].Insecure || endpoints[1].Ref != ref || endpoints[1].Insecure {
			t.Errorf("%s is looked for at %+v, and is at %s", ref, endpoints, want)
		}
	}
}

func TestRegistriesConf(t *testing.T) {
	t.Parallel()
	mappings, err := place.Mappings(refs[1:2])
	if err != nil {
		t.Fatal(err)
	}
	conf, err := mirror.RegistriesConf(mappings, false)
	if err != nil {
		t.Fatal(err)
	}
	const want = `[[registry]]
prefix = "quay.io/acme"
location = "quay.io/acme"

[[registry.mirror]]
location = "mirror.example:5000/olm/quay.io/acme"
`
	if diff := cmp.Diff(want, conf); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestSets(t *testing.T) {
	t.Parallel()
	mappings, err := place.Mappings(refs)
	if err != nil {
		t.Fatal(err)
	}
	text, err := yaml.Marshal(mirror.Sets(mappings, "quay.io/operatorhubio/catalog"))
	if err != nil {
		t.Fatal(err)
	}
	const want = `- apiVersion: config.openshift.io/v1
  kind: ImageDigestMirrorSet
  metadata:
    name: mirror-quay-io-operatorhubio-catalog
  spec:
    imageDigestMirrors:
    - mirrors:
      - mirror.example:5000/olm/quay.io/acme
      source: quay.io/acme
    - mirrors:
      - mirror.example:5000/olm/registry.test-443/single
      source: registry.test:443/single
- apiVersion: config.openshift.io/v1
  kind: ImageTagMirrorSet
  metadata:
    name: mirror-quay-io-operatorhubio-catalog
  spec:
    imageTagMirrors:
    - mirrors:
      - mirror.example:5000/olm/docker.io/library
      source: docker.io/library
    - mirrors:
      - mirror.example:5000/olm/quay.io/acme
      source: quay.io/acme
`
	if diff := cmp.Diff(want, string(text)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	sets := mirror.Sets(mappings, "registry.example/"+strings.Repeat("long/", 30)+"catalog")
	metadata, _ := sets[0]["metadata"].(map[string]any)
	if name, _ := metadata["name"].(string); len(name) > 63 || strings.HasSuffix(name, "-") {
		t.Errorf("the name of a long one is %q", name)
	}
}
