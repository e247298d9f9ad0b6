package testkit

import (
	"fmt"
	"testing/fstest"
)

// APIPort is the port of the Service in front of the API of an operator.
const APIPort = 8443

// APIGroup is the group of the API that the Deployment of an operator serves.
func (o Operator) APIGroup() string { return "plants." + o.Package + ".test" }

// BundleWithAPIs is the bundle with an API of plants in these versions, which its Deployment
// serves.
func (o Operator) BundleWithAPIs(versions ...string) fstest.MapFS {
	files := o.Bundle()
	csv := files["manifests/csv.yaml"]
	csv.Data = append(csv.Data, "  apiservicedefinitions:\n    owned:\n"...)
	for _, version := range versions {
		csv.Data = fmt.Appendf(csv.Data, "    - {name: plants, kind: Plant, group: %s, version: %s, deploymentName: %s, containerPort: %d}\n",
			o.APIGroup(), version, o.Package, APIPort)
	}
	return files
}
