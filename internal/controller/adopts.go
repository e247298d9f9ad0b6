package controller

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/client"

	ocv1 "github.com/clusterextensions/operator-controller/api/v1"
)

// adoptedBy returns the name of the extension whose content ext adopts; empty if there is none, or if that
// extension still exists, since it owns its content then.
func (r *Reconciler) adoptedBy(ctx context.Context, ext *ocv1.ClusterExtension) string {
	name := ext.Annotations[ocv1.AdoptsContentOfAnnotation]
	if name == ext.Name || len(validation.IsDNS1123Subdomain(name)) > 0 {
		return ""
	}
	if err := r.Client.Get(ctx, client.ObjectKey{Name: name}, &ocv1.ClusterExtension{}); !apierrors.IsNotFound(err) {
		return ""
	}
	return name
}
