package classic

import (
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	ocv1 "github.com/clusterextensions/operator-controller/api/v1"
)

func source(namespace, name, image string, changes ...func(*operatorsv1alpha1.CatalogSource)) operatorsv1alpha1.CatalogSource {
	made := operatorsv1alpha1.CatalogSource{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec:       operatorsv1alpha1.CatalogSourceSpec{SourceType: operatorsv1alpha1.SourceTypeGrpc, Image: image},
	}
	for _, change := range changes {
		change(&made)
	}
	return made
}

func poll(interval time.Duration) func(*operatorsv1alpha1.CatalogSource) {
	return func(made *operatorsv1alpha1.CatalogSource) {
		made.Spec.UpdateStrategy = &operatorsv1alpha1.UpdateStrategy{RegistryPoll: &operatorsv1alpha1.RegistryPoll{Interval: &metav1.Duration{Duration: interval}}}
	}
}

func served(name, image, from string) ocv1.ClusterCatalog {
	made := ocv1.ClusterCatalog{ObjectMeta: metav1.ObjectMeta{Name: name}}
	made.Spec.Source.Image = &ocv1.ImageSource{Ref: image}
	if from != "" {
		made.Annotations = map[string]string{ocv1.MigratedFromCatalogSourceAnnotation: from}
	}
	return made
}

func TestCatalogMoves(t *testing.T) {
	t.Parallel()
	const image, other = "registry.test/catalog:v1", "registry.test/other:v1"
	digest := "registry.test/catalog@sha256:" + strings.Repeat("a", 64)
	for name, test := range map[string]struct {
		sources  []operatorsv1alpha1.CatalogSource
		catalogs []ocv1.ClusterCatalog

		want []string // fate and name, or why not
	}{
		"one":                        {sources: []operatorsv1alpha1.CatalogSource{source("a", "cs", image)}, want: []string{"create cs"}},
		"G13: two of one name":       {sources: []operatorsv1alpha1.CatalogSource{source("b", "cs", other), source("a", "cs", image)}, want: []string{"create cs-a", "create cs-b"}},
		"two of one name and image":  {sources: []operatorsv1alpha1.CatalogSource{source("a", "cs", image), source("b", "cs", image)}, want: []string{"create cs", "served cs"}},
		"two of one image":           {sources: []operatorsv1alpha1.CatalogSource{source("a", "one", image), source("a", "two", image)}, want: []string{"create one", "served one"}},
		"served by somebody":         {sources: []operatorsv1alpha1.CatalogSource{source("a", "cs", image)}, catalogs: []ocv1.ClusterCatalog{served("mine", image, "")}, want: []string{"adopt mine"}},
		"served in its place":        {sources: []operatorsv1alpha1.CatalogSource{source("a", "cs", image)}, catalogs: []ocv1.ClusterCatalog{served("cs", image, "a/cs")}, want: []string{"served cs"}},
		"served in place of another": {sources: []operatorsv1alpha1.CatalogSource{source("a", "cs", image)}, catalogs: []ocv1.ClusterCatalog{served("cs", image, "b/cs")}, want: []string{"served cs"}},
		"the name is taken":          {sources: []operatorsv1alpha1.CatalogSource{source("a", "cs", image)}, catalogs: []ocv1.ClusterCatalog{served("cs", other, "")}, want: []string{"refused has another image"}},
		"without a tag":              {sources: []operatorsv1alpha1.CatalogSource{source("a", "cs", "registry.test:5000/catalog")}, want: []string{"create cs"}},
		"without a registry":         {sources: []operatorsv1alpha1.CatalogSource{source("a", "cs", "catalog/one:v1")}, want: []string{"refused names no registry"}},
		"without an image":           {sources: []operatorsv1alpha1.CatalogSource{source("a", "cs", "")}, want: []string{"refused has no image: serve its content from an image"}},
		"of a ConfigMap": {sources: []operatorsv1alpha1.CatalogSource{source("a", "cs", image, func(one *operatorsv1alpha1.CatalogSource) {
			one.Spec.SourceType = operatorsv1alpha1.SourceTypeConfigmap
		})}, want: []string{"refused is of type configmap"}},
		"a priority that is too high": {sources: []operatorsv1alpha1.CatalogSource{source("a", "cs", image, func(one *operatorsv1alpha1.CatalogSource) { one.Spec.Priority = math.MaxInt32 + 1 })}, want: []string{"refused more than 32 bits"}},
		"a digest":                    {sources: []operatorsv1alpha1.CatalogSource{source("a", "cs", digest, poll(time.Hour))}, want: []string{"create cs"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := &Cluster{Sources: test.sources, Catalogs: test.catalogs}
			moves := c.CatalogMoves()
			if len(moves) != len(test.want) {
				t.Fatalf("%d moves", len(moves))
			}
			for i, move := range moves {
				fate, detail, _ := strings.Cut(test.want[i], " ")
				isAsWanted := move.Catalog == nil && strings.Contains(move.Why, detail) || move.Catalog != nil && move.Catalog.Name == detail
				if string(move.Fate) != fate || !isAsWanted {
					t.Errorf("got %s %v %q, want %s", move.Fate, move.Catalog, move.Why, test.want[i])
				}
			}
		})
	}
}

func TestCatalogMade(t *testing.T) {
	t.Parallel()
	made := source("olm", "community", "registry.test:5000/catalog", poll(90*time.Second), func(one *operatorsv1alpha1.CatalogSource) {
		one.Annotations = map[string]string{annotationImageTemplate: "registry.test/catalog:v{kube_major_version}"}
		one.Spec.Priority, one.Spec.Secrets, one.Spec.DisplayName = -200, []string{"pull"}, "Community"
	})
	c := &Cluster{Sources: []operatorsv1alpha1.CatalogSource{made}, Subscriptions: newCluster().Subscriptions}
	move := c.CatalogMoves()[0]
	want := &ocv1.ClusterCatalog{
		TypeMeta:   metav1.TypeMeta{APIVersion: ocv1.GroupVersion.String(), Kind: ocv1.ClusterCatalogKind},
		ObjectMeta: metav1.ObjectMeta{Name: "community", Annotations: map[string]string{ocv1.MigratedFromCatalogSourceAnnotation: "olm/community"}},
		Spec: ocv1.ClusterCatalogSpec{
			Priority: -200, AvailabilityMode: ocv1.AvailabilityModeAvailable,
			Source: ocv1.CatalogSource{Type: ocv1.SourceTypeImage, Image: &ocv1.ImageSource{Ref: "registry.test:5000/catalog:latest", PollIntervalMinutes: new(2)}},
		},
	}
	if diff := cmp.Diff(want, move.Catalog); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if all := strings.Join(move.Notes, "\n"); len(move.Notes) != 5 || !strings.Contains(all, "pull") || !strings.Contains(all, "displayName") {
		t.Errorf("notes: %s", all)
	}
	if !move.IsUsed {
		t.Error("a Subscription refers to it")
	}
}

// An extension takes its catalog from what serves in the place of its CatalogSource, which is what has its image: anybody who may
// edit a ClusterCatalog can have it say so.
func TestChoose(t *testing.T) {
	t.Parallel()
	op := operatorNamed(t, newCluster(), testPackage)
	const image = "registry.test/community:v1"
	in := func(catalog, image string, priority int32, channels ...string) Offer {
		return Offer{Catalog: catalog, Image: image, Priority: priority, Channels: channels, DefaultChannel: "stable"}
	}
	for name, test := range map[string]struct {
		offers []Offer
		want   string
	}{
		"none":                      {},
		"in its place":              {[]Offer{in("a", "", 10, "stable"), in("b", image, -1, "stable")}, "b"},
		"the higher priority":       {[]Offer{in("a", "", 0, "stable"), in("b", "", 1, "stable")}, "b"},
		"one that has its channel":  {[]Offer{in("a", image, 0, "old"), in("b", "", 0, "stable")}, "b"},
		"none with the bundle":      {[]Offer{in("a", image, 0)}, ""},
		"another image":             {[]Offer{in("a", "registry.test/other:v1", 10, "stable"), in("b", image, -1, "stable")}, "b"},
		"the first of equal offers": {[]Offer{in("b", "", 0, "stable"), in("a", "", 0, "stable")}, "a"},
	} {
		if got, isOffered := op.Choose(test.offers); got.Catalog != test.want || isOffered != (test.want != "") {
			t.Errorf("%s: got %q", name, got.Catalog)
		}
	}
}

// Where nothing tells which catalog was meant, a person has to see which one is taken.
func TestSeveralCatalogs(t *testing.T) {
	t.Parallel()
	c := newCluster()
	offer := func(catalog, image string) Offer {
		return Offer{Catalog: catalog, Image: image, Channels: []string{"stable"}}
	}
	count := func(offers ...Offer) int {
		exam := Examination{Cluster: c, Operator: operatorNamed(t, c, testPackage), Offers: offers}
		found := 0
		for _, one := range checkOffers(&exam) {
			if one.Check != "M3" || one.Severity != Attention || !strings.Contains(one.Text, `"a" is taken, and b would do`) {
				t.Errorf("finding %s", one)
			}
			found++
		}
		return found
	}
	if n := count(offer("a", "registry.test/other:v1"), offer("b", "")); n != 1 {
		t.Errorf("%d findings, where two would do", n)
	}
	if n := count(offer("a", "registry.test/other:v1"), offer("b", "registry.test/community:v1")) + count(offer("a", "")); n != 0 {
		t.Errorf("%d findings, where it is clear", n)
	}
}

// What could offer packages to one namespace does not come before what is for all, nor beside it.
func TestPriorityOfATenantsCatalog(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		known     string // by a Subscription of this namespace
		set, want int
	}{
		"for one namespace":          {"tenant", 1 << 20, -1},
		"by default":                 {"tenant", 0, -1},
		"below that":                 {"tenant", -5, -5},
		"known to another namespace": {"team", 1 << 20, 1 << 20},
	} {
		c := newCluster()
		c.Sources = []operatorsv1alpha1.CatalogSource{source("tenant", "cs", "registry.test/catalog:v1", func(one *operatorsv1alpha1.CatalogSource) { one.Spec.Priority = test.set })}
		c.subscription().Namespace = test.known
		c.subscription().Status.CatalogHealth = []operatorsv1alpha1.SubscriptionCatalogHealth{{CatalogSourceRef: &corev1.ObjectReference{Namespace: "tenant", Name: "cs"}}}
		move := c.CatalogMoves()[0]
		isNoted := slices.ContainsFunc(move.Notes, func(note string) bool { return strings.HasPrefix(note, "its priority is -1") })
		if got := move.Catalog.Spec.Priority; int(got) != test.want || isNoted != (test.set != test.want) {
			t.Errorf("%s: %d, with %q", name, got, move.Notes)
		}
	}
}
