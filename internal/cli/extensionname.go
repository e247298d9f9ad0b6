package cli

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	ocv1 "github.com/clusterextensions/operator-controller/api/v1"
)

// namedKind is a kind of our API as kubectl takes it in front of a name.
type namedKind struct {
	kind string

	// words are what kubectl takes for it, the one to be named in errors first.
	words []string
}

var (
	extensionKind = namedKind{"ClusterExtension", []string{"clusterextension", "clusterextensions", "cext"}}
	catalogKind   = namedKind{"ClusterCatalog", []string{"clustercatalog", "clustercatalogs", "ccat"}}
)

// IsExtensionKind is true of the kind alone, and with its group behind it, which may have
// the version before it.
func IsExtensionKind(text string) bool { return extensionKind.is(text) }

// IsCatalogKind is the same for that of catalogs.
func IsCatalogKind(text string) bool { return catalogKind.is(text) }

func (k namedKind) is(text string) bool {
	kind, group, _ := strings.Cut(strings.ToLower(text), ".")
	own := ocv1.GroupVersion
	return slices.Contains(k.words, kind) && slices.Contains([]string{"", own.Group, own.Version + "." + own.Group}, group)
}

// ExtensionName is the name of a ClusterExtension as kubectl takes it: after its
// kind, or after its kind and a slash; and alone.
func ExtensionName(args []string) (string, error) { return extensionKind.valid(args) }

// CatalogName is the same for a ClusterCatalog.
func CatalogName(args []string) (string, error) { return catalogKind.valid(args) }

func (k namedKind) valid(args []string) (string, error) {
	name, err := k.name(args)
	if problems := validation.IsDNS1123Subdomain(name); err == nil && len(problems) > 0 {
		return "", fmt.Errorf("no %s can have the name %q: %s", k.kind, name, problems[0])
	}
	return name, err
}

func (k namedKind) name(args []string) (string, error) {
	kind, name, slash := strings.Cut(args[0], "/")
	switch {
	case len(args) == 2 && !slash:
		name = args[1]
	case len(args) == 1 && !slash && !k.is(kind):
		return kind, nil
	case len(args) > 1:
		return "", fmt.Errorf("%q is one name too many", args[1])
	}
	if !k.is(kind) {
		return "", fmt.Errorf("%q is no %s: it has to be %s/NAME", strings.Join(args, " "), k.kind, k.words[0])
	}
	if name == "" || strings.Contains(name, "/") {
		return "", fmt.Errorf("the name of the %s is missing: it has to be %s/NAME", k.kind, k.words[0])
	}
	return name, nil
}
