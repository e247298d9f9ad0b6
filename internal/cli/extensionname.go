package cli

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	ocv1 "github.com/clusterextensions/operator-controller/api/v1"
)

// extensionKinds are what kubectl takes for the kind of a ClusterExtension.
var extensionKinds = []string{"clusterextension", "clusterextensions", "cext"}

// IsExtensionKind is true of the kind alone, and with its group behind it, which may have
// the version before it.
func IsExtensionKind(text string) bool {
	kind, group, _ := strings.Cut(strings.ToLower(text), ".")
	own := ocv1.GroupVersion
	return slices.Contains(extensionKinds, kind) && slices.Contains([]string{"", own.Group, own.Version + "." + own.Group}, group)
}

// ExtensionName is the name of a ClusterExtension as kubectl takes it: after its
// kind, or after its kind and a slash; and alone.
func ExtensionName(args []string) (string, error) {
	name, err := extensionName(args)
	if problems := validation.IsDNS1123Subdomain(name); err == nil && len(problems) > 0 {
		return "", fmt.Errorf("no ClusterExtension can have the name %q: %s", name, problems[0])
	}
	return name, err
}

func extensionName(args []string) (string, error) {
	kind, name, slash := strings.Cut(args[0], "/")
	switch {
	case len(args) == 2 && !slash:
		name = args[1]
	case len(args) == 1 && !slash && !IsExtensionKind(kind):
		return kind, nil
	case len(args) > 1:
		return "", fmt.Errorf("%q is one name too many", args[1])
	}
	if !IsExtensionKind(kind) {
		return "", fmt.Errorf("%q is no ClusterExtension: it has to be clusterextension/NAME", strings.Join(args, " "))
	}
	if name == "" || strings.Contains(name, "/") {
		return "", errors.New("the name of the ClusterExtension is missing: it has to be clusterextension/NAME")
	}
	return name, nil
}
