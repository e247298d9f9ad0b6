package storeddata_test

import (
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/clusterextensions/operator-controller/internal/preflight/storeddata"
	"github.com/clusterextensions/operator-controller/internal/testkit/schematest"
)

const anything = schematest.Anything

var (
	upgrades   = schematest.Upgrades
	widgets    = schematest.Widgets
	definition = schematest.Definition
	version    = schematest.Version
	widget     = schematest.Widget
)

func validator(tb testing.TB, old, updated *apiextensionsv1.CustomResourceDefinition) *storeddata.Validator {
	tb.Helper()
	v, err := storeddata.New(tb.Context(), old, updated)
	if err != nil {
		tb.Fatal(err)
	}
	return v
}
