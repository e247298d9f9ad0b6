package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/clusterextensions/operator-controller/test/environment"
)

// records are the Secrets that remember the releases, by extension.
type records map[string][]corev1.Secret

func readRecords(ctx context.Context) (records, error) {
	list := &corev1.SecretList{}
	err := theSuite.Admin.List(ctx, list, client.InNamespace(environment.SystemNamespace),
		client.MatchingLabels{"owner": "operator-controller"})
	found := records{}
	for _, secret := range list.Items {
		if match := recordPattern.FindStringSubmatch("/secrets/" + secret.Name); match != nil {
			found[match[1]] = append(found[match[1]], secret)
		}
	}
	return found, err
}

// check finds revisions that cannot be read or are not done, chunks that no
// revision has, and a newest revision that is not the given version.
func (r records) check(extension, version string) error {
	chunks := map[string][]byte{}
	for _, secret := range r[extension] {
		if secret.Labels["type"] == "chunk" {
			chunks[secret.Name] = secret.Data["chunk"]
		}
	}
	var errs []error
	var newest *environment.Release
	used := map[string]bool{}
	for _, secret := range r[extension] {
		if secret.Labels["type"] != "index" {
			continue
		}
		found, names, err := environment.ReadRelease(&secret, chunks)
		if err != nil {
			errs = append(errs, fmt.Errorf("record %s: %w", secret.Name, err))
			continue
		}
		for _, name := range names {
			used[name] = true
		}
		if newest == nil || found.Version > newest.Version {
			newest = found
		}
		if status := found.Info.Status; !slices.Contains([]string{"deployed", "superseded", "failed"}, status) || status != secret.Labels["status"] {
			errs = append(errs, fmt.Errorf("record %s is %s inside and %s outside", secret.Name, status, secret.Labels["status"]))
		}
	}
	for name := range chunks {
		if !used[name] {
			errs = append(errs, fmt.Errorf("chunk %s belongs to no record", name))
		}
	}
	if newest == nil || newest.Info.Status != "deployed" || newest.BundleVersion() != version {
		errs = append(errs, fmt.Errorf("the newest revision is %+v, want %s deployed", newest, version))
	}
	return errors.Join(errs...)
}
