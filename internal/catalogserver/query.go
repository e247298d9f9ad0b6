package catalogserver

import (
	"errors"
	"net/url"
)

// errQuery says that the parameters of a request are not those of a Query.
var errQuery = errors.New("invalid query")

// Query says which objects of a catalog are wanted: those that have all of its
// values. An empty value stands for any, so the zero Query is for all objects.
//
// The object that describes a package has the package's name as its name, and
// belongs to no package.
type Query struct {
	Schema, Package, Name string
}

// parseQuery reads the query of a URL. Of a repeated parameter the first value
// counts, even when it is empty.
func parseQuery(raw string) (Query, error) {
	// Unlike URL.Query this fails on what it cannot read: leaving out a
	// parameter would select more than was asked for.
	values, err := url.ParseQuery(raw)
	if err != nil {
		return Query{}, errQuery
	}
	for parameter := range values {
		switch parameter {
		case "schema", "package", "name":
		default:
			return Query{}, errQuery
		}
	}
	return Query{Schema: values.Get("schema"), Package: values.Get("package"), Name: values.Get("name")}, nil
}

// values returns the values of q in the order of the fields of an index.
func (q Query) values() [fieldCount]string { return [...]string{q.Schema, q.Package, q.Name} }
