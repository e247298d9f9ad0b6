package cli

import (
	"context"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/clusterextensions/operator-controller/config/crd"
	"github.com/clusterextensions/operator-controller/internal/apischema"
)

var readExtensionSchema = sync.OnceValues(func() (*apischema.Schema, error) { return apischema.New(crd.ClusterExtension) })

// checkSchema refuses what the definition of the kind does not allow.
func checkSchema(ctx context.Context, extension *unstructured.Unstructured) error {
	schema, err := readExtensionSchema()
	if err != nil {
		return err
	}
	return schema.Check(ctx, extension).ToAggregate()
}
