package classic

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	ocv1 "github.com/clusterextensions/operator-controller/api/v1"
	"github.com/clusterextensions/operator-controller/internal/applier/object"
	"github.com/clusterextensions/operator-controller/internal/excerpt"
	"github.com/clusterextensions/operator-controller/internal/imageref"
)

// CatalogFate is what becomes of a CatalogSource.
type CatalogFate string

// Fates of CatalogSources.
const (
	// CatalogCreated: there is to be a ClusterCatalog in its place.
	CatalogCreated CatalogFate = "create"
	// CatalogAdopted: a ClusterCatalog serves the image already, and gets an annotation.
	CatalogAdopted CatalogFate = "adopt"
	// CatalogServed: there is nothing to do.
	CatalogServed CatalogFate = "served"
	// CatalogRefused: no ClusterCatalog can be made of it.
	CatalogRefused CatalogFate = "refused"
)

// CatalogMove is a CatalogSource and the ClusterCatalog that serves in its place. The
// CatalogSource stays.
type CatalogMove struct {
	Source *operatorsv1alpha1.CatalogSource
	Fate   CatalogFate
	// Catalog is as it is to be applied: whole if it is created, and else what is added. It is nil
	// if the source is refused.
	Catalog *ocv1.ClusterCatalog
	// Why says what is wrong with a source that is refused.
	Why string
	// IsUsed says that a Subscription refers to the source.
	IsUsed bool
	// Notes are what a ClusterCatalog cannot have, a line each.
	Notes []string
}

// CatalogMoves are those of all CatalogSources, sorted by namespace and name.
func (c *Cluster) CatalogMoves() []CatalogMove {
	sources := make([]*operatorsv1alpha1.CatalogSource, len(c.Sources))
	images := map[string][]string{} // by the name of sources, those that differ
	for i := range c.Sources {
		sources[i] = &c.Sources[i]
		name := c.Sources[i].Name
		if image := imageOf(&c.Sources[i]); image != "" && !slices.Contains(images[name], image) {
			images[name] = append(images[name], image)
		}
	}
	slices.SortFunc(sources, func(a, b *operatorsv1alpha1.CatalogSource) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	planned := catalogPlan{names: map[string]struct{}{}}
	for i := range c.Catalogs {
		planned.add(&c.Catalogs[i])
	}
	moves := make([]CatalogMove, 0, len(sources))
	for _, source := range sources {
		name := source.Name
		if len(images[name]) > 1 {
			name = source.Name + "-" + source.Namespace
		}
		move := planned.move(source, name)
		if move.Fate == CatalogCreated && move.Catalog.Spec.Priority > localPriority && !c.isForAll(source) {
			move.Catalog.Spec.Priority = localPriority
			move.Notes = append(move.Notes, fmt.Sprintf("its priority is %d, and not %d: no Subscription of another namespace is said to know it, and who could offer packages to one namespace is not to decide for all; change it if you trust it",
				localPriority, source.Spec.Priority))
		}
		move.IsUsed = slices.ContainsFunc(c.Subscriptions, func(one operatorsv1alpha1.Subscription) bool {
			return refersTo(&one, source)
		})
		moves = append(moves, move)
	}
	return moves
}

// localPriority is below that of catalogs of which nobody says anything.
const localPriority = -1

// isForAll says that classic OLM offers the packages of a source to other namespaces, too: it notes in Subscriptions which
// sources it knows for them.
func (c *Cluster) isForAll(source *operatorsv1alpha1.CatalogSource) bool {
	return slices.ContainsFunc(c.Subscriptions, func(one operatorsv1alpha1.Subscription) bool {
		return one.Namespace != source.Namespace && slices.ContainsFunc(one.Status.CatalogHealth, func(health operatorsv1alpha1.SubscriptionCatalogHealth) bool {
			ref := health.CatalogSourceRef
			return ref != nil && ref.Namespace == source.Namespace && ref.Name == source.Name
		})
	})
}

// catalogPlan is which catalogs there are and will be.
type catalogPlan struct {
	catalogs []*ocv1.ClusterCatalog
	names    map[string]struct{}
}

func (p *catalogPlan) add(catalog *ocv1.ClusterCatalog) {
	p.catalogs = append(p.catalogs, catalog)
	p.names[catalog.Name] = struct{}{}
}

func (p *catalogPlan) move(source *operatorsv1alpha1.CatalogSource, name string) CatalogMove {
	move := CatalogMove{Source: source, Fate: CatalogRefused}
	if move.Why = refusal(source); move.Why != "" {
		return move
	}
	image := imageOf(source)
	from := source.Namespace + "/" + source.Name
	for _, catalog := range p.catalogs {
		if catalog.Spec.Source.Image == nil || catalog.Spec.Source.Image.Ref != image {
			continue
		}
		// Whoever it was annotated for first keeps it.
		move.Fate, move.Catalog = CatalogServed, emptyCatalog(catalog.Name)
		if catalog.Annotations[ocv1.MigratedFromCatalogSourceAnnotation] == "" {
			move.Fate = CatalogAdopted
			move.Catalog.Annotations = map[string]string{ocv1.MigratedFromCatalogSourceAnnotation: from}
		}
		return move
	}
	if _, isTaken := p.names[name]; isTaken {
		move.Why = fmt.Sprintf("ClusterCatalog %q has another image: change its image to %s; extensions from it are then upgraded from that image", name, image)
		return move
	}
	move.Fate, move.Catalog = CatalogCreated, emptyCatalog(name)
	move.Catalog.Annotations = map[string]string{ocv1.MigratedFromCatalogSourceAnnotation: from}
	move.Catalog.Spec = specOf(source)
	move.Notes = notesOn(source)
	p.add(move.Catalog)
	return move
}

func emptyCatalog(name string) *ocv1.ClusterCatalog {
	return &ocv1.ClusterCatalog{
		TypeMeta:   metav1.TypeMeta{APIVersion: ocv1.GroupVersion.String(), Kind: ocv1.ClusterCatalogKind},
		ObjectMeta: metav1.ObjectMeta{Name: name},
	}
}

// imageOf is the image of a source, with the tag that is meant where there is none; empty for a
// source without one.
func imageOf(source *operatorsv1alpha1.CatalogSource) string {
	image := source.Spec.Image
	_, path, _ := strings.Cut(image, "/")
	if image == "" || strings.Contains(path, ":") || strings.Contains(image, "@") {
		return image
	}
	return image + ":latest"
}

// refusal says why a source cannot be a ClusterCatalog.
func refusal(source *operatorsv1alpha1.CatalogSource) string {
	if why := unmovable(source); why != "" {
		return "it " + why + ": serve its content from an image, and name that in a ClusterCatalog"
	}
	registry, _, isPath := strings.Cut(source.Spec.Image, "/")
	if !isPath || !strings.ContainsAny(registry, ".:") && registry != "localhost" {
		return fmt.Sprintf("its image %s names no registry, as that of a ClusterCatalog has to", excerpt.Quote(source.Spec.Image))
	}
	if priority := source.Spec.Priority; priority < math.MinInt32 || priority > math.MaxInt32 {
		return fmt.Sprintf("its priority %d has more than 32 bits: change it", priority)
	}
	return ""
}

func specOf(source *operatorsv1alpha1.CatalogSource) ocv1.ClusterCatalogSpec {
	image := &ocv1.ImageSource{Ref: imageOf(source)}
	if source.Spec.UpdateStrategy != nil && source.Spec.UpdateStrategy.RegistryPoll != nil && imageref.Digest(image.Ref) == "" {
		interval := operatorsv1alpha1.DefaultRegistryPollDuration
		if set := source.Spec.UpdateStrategy.Interval; set != nil {
			interval = set.Duration
		}
		image.PollIntervalMinutes = new(max(1, int(math.Ceil(float64(interval)/float64(time.Minute)))))
	}
	return ocv1.ClusterCatalogSpec{
		Source:           ocv1.CatalogSource{Type: ocv1.SourceTypeImage, Image: image},
		Priority:         int32(source.Spec.Priority), //nolint:gosec // it was checked
		AvailabilityMode: ocv1.AvailabilityModeAvailable,
	}
}

// notesOn are what a ClusterCatalog made of a source has not.
func notesOn(source *operatorsv1alpha1.CatalogSource) []string {
	spec := &source.Spec
	notes := []string{fmt.Sprintf("its packages can be chosen in all namespaces, and not in %q alone", source.Namespace)}
	if imageOf(source) != spec.Image {
		notes = append(notes, "its image has no tag: latest is meant")
	}
	if source.Annotations[annotationImageTemplate] != "" {
		notes = append(notes, "annotation "+annotationImageTemplate+" is dropped: the tag does not follow the version of the cluster any more")
	}
	if len(spec.Secrets) > 0 {
		notes = append(notes, "spec.secrets are dropped: give the controller credentials for "+excerpt.Of(spec.Secrets, maxNames)+" by imagePullSecrets of its ServiceAccount, or its global pull secret")
	}
	var dropped []string
	for _, one := range []struct {
		field string
		isSet bool
	}{
		{"displayName", spec.DisplayName != ""},
		{"publisher", spec.Publisher != ""},
		{"description", spec.Description != ""},
		{"icon", spec.Icon.Data != ""},
		{"grpcPodConfig", spec.GrpcPodConfig != nil},
	} {
		if one.isSet {
			dropped = append(dropped, "spec."+one.field)
		}
	}
	if len(dropped) > 0 {
		notes = append(notes, strings.Join(dropped, ", ")+": a ClusterCatalog has no such fields")
	}
	if update := spec.UpdateStrategy; update != nil && update.RegistryPoll != nil && update.ParsingError != "" {
		notes = append(notes, "its poll interval cannot be read: 15 minutes, as for classic OLM")
	}
	return notes
}

// Key is that of the CatalogSource.
func (m *CatalogMove) Key() object.Key {
	return object.Key{
		GroupKind: operatorsv1alpha1.SchemeGroupVersion.WithKind(operatorsv1alpha1.CatalogSourceKind).GroupKind(),
		Namespace: m.Source.Namespace, Name: m.Source.Name,
	}
}
