package cli

import "testing"

func TestNamesOfExtensions(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		args []string
		want string // empty for none
	}{
		{[]string{"x"}, "x"},
		{[]string{"x.y"}, "x.y"},
		{[]string{"clusterextension", "x"}, "x"},
		{[]string{"clusterextension/x"}, "x"},
		{[]string{"clusterextensions/x"}, "x"},
		{[]string{"cext", "x"}, "x"},
		{[]string{"ClusterExtension/x"}, "x"},
		{[]string{"clusterextension.olm.operatorframework.io/x"}, "x"},
		{[]string{"clusterextensions.v1.olm.operatorframework.io", "x"}, "x"},
		{[]string{"clusterextension.v1.olm.operatorframework.io/x"}, "x"},
		{[]string{"clusterextension.x"}, "clusterextension.x"},
		{[]string{"cext.olm.operatorframework.io.x"}, "cext.olm.operatorframework.io.x"},
		{[]string{"clusterextension.example.com/x"}, ""},
		{[]string{""}, ""},
		{[]string{"Foo_Bar"}, ""},
		{[]string{"clusterextension/Foo_Bar"}, ""},
		{[]string{"clusterextension"}, ""},
		{[]string{"clusterextension/"}, ""},
		{[]string{"clusterextension", ""}, ""},
		{[]string{"clusterextension/x/y"}, ""},
		{[]string{"clusterextension/x", "y"}, ""},
		{[]string{"pod/x"}, ""},
		{[]string{"pod", "x"}, ""},
		{[]string{"x", "y"}, ""},
	} {
		got, err := ExtensionName(test.args)
		if got != test.want || (err == nil) != (test.want != "") {
			t.Errorf("%q: %q, %v, want %q", test.args, got, err, test.want)
		}
	}
}

func TestNamesOfCatalogs(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		args []string
		want string // empty for none
	}{
		{[]string{"clustercatalog/x"}, "x"},
		{[]string{"ccat", "x"}, "x"},
		{[]string{"clustercatalogs.olm.operatorframework.io/x"}, "x"},
		{[]string{"clusterextension/x"}, ""},
		{[]string{"clustercatalog/"}, ""},
	} {
		got, err := CatalogName(test.args)
		if got != test.want || (err == nil) != (test.want != "") {
			t.Errorf("%q: %q, %v, want %q", test.args, got, err, test.want)
		}
	}
}
