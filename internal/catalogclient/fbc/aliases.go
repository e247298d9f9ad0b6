package fbc

import (
	"bytes"

	"go.yaml.in/yaml/v2"
)

// checkAliases holds what a YAML document stands for against the bound for objects. Its parser
// bounds how many aliases there are, but not the texts that they repeat: these are in memory
// once until they are written as JSON, each as often as there are aliases.
func (d *Decoder) checkAliases() error {
	if !bytes.ContainsRune(d.object, '&') || !bytes.ContainsRune(d.object, '*') {
		return nil
	}
	var document any
	if err := yaml.Unmarshal(d.object, &document); err != nil {
		return nil //nolint:nilerr // who converts it says so
	}
	left := d.limits.ObjectBytes
	if spend(document, &left); left < 0 {
		return d.objectTooLarge()
	}
	return nil
}

// spend takes the bytes of a value from those that are left, and looks no further when there
// are none.
func spend(value any, left *int) {
	if *left < 0 {
		return
	}
	switch value := value.(type) {
	case string:
		*left -= len(value)
	case []any:
		for _, element := range value {
			spend(element, left)
		}
	case map[any]any:
		for key, element := range value {
			spend(key, left)
			spend(element, left)
		}
	}
	*left--
}
