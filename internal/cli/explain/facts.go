package explain

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/pflag"
	versionutil "k8s.io/apimachinery/pkg/util/version"

	"github.com/clusterextensions/operator-controller/internal/bundle"
	"github.com/clusterextensions/operator-controller/internal/requirement"
)

// clusterFacts are what flags say about a cluster.
type clusterFacts struct {
	kubernetes, openShift string
	serves, extensions    []string
}

func (f *clusterFacts) bind(flags *pflag.FlagSet) {
	flags.StringVar(&f.kubernetes, "kubernetes", "", "Version of Kubernetes.")
	flags.StringVar(&f.openShift, "openshift", "", "Version of OpenShift.")
	flags.StringArrayVar(&f.serves, "serves", nil, "API that the cluster serves, as GROUP/VERSION/KIND. Repeat it for several.")
	flags.StringArrayVar(&f.extensions, "extension", nil, "Package that is installed, as PACKAGE=VERSION. Repeat it for several.")
}

// cluster is nil if there is no fact at all.
func (f *clusterFacts) cluster() (*requirement.Cluster, error) {
	if f.kubernetes == "" && f.openShift == "" && len(f.serves) == 0 && len(f.extensions) == 0 {
		return nil, nil
	}
	cluster := &requirement.Cluster{Kubernetes: f.kubernetes, OpenShift: f.openShift}
	// A version that nobody can read would meet every requirement.
	for flag, text := range map[string]string{"kubernetes": f.kubernetes, "openshift": f.openShift} {
		if text == "" {
			continue
		}
		if _, err := versionutil.ParseGeneric(text); err != nil {
			return nil, fmt.Errorf("--%s %q is not a version", flag, text)
		}
	}
	var served []requirement.API
	for _, text := range f.serves {
		api, err := parseAPI(text)
		if err != nil {
			return nil, err
		}
		served = append(served, api)
	}
	cluster.Serves = func(api requirement.API) bool { return slices.Contains(served, api) }
	for _, text := range f.extensions {
		name, version, _ := strings.Cut(text, "=")
		if _, err := bundle.ParseVersion(version); name == "" || err != nil {
			return nil, fmt.Errorf("--extension %q is not PACKAGE=VERSION", text)
		}
		cluster.Extensions = append(cluster.Extensions, requirement.Extension{Name: name, Package: name, Version: version})
	}
	return cluster, nil
}

// parseAPI reads GROUP/VERSION/KIND, of which the core API has no group.
func parseAPI(text string) (requirement.API, error) {
	parts := strings.Split(text, "/")
	if len(parts) == 2 {
		parts = slices.Insert(parts, 0, "")
	}
	if len(parts) != 3 || parts[1] == "" || parts[2] == "" {
		return requirement.API{}, fmt.Errorf("--serves %q is not GROUP/VERSION/KIND", text)
	}
	return requirement.API{Group: parts[0], Version: parts[1], Kind: parts[2]}, nil
}
