package strictyaml_test

import (
	"fmt"

	"github.com/invoicespec/brimline/internal/strictyaml"
)

func ExampleParse() {
	var plan struct {
		Burst int64  `yaml:"burst"`
		Note  string `yaml:"note,omitempty"`
	}
	_, err := strictyaml.Parse("plan.yaml", []byte("note: a small plan\nburst: 1.5\n"), &plan)
	fmt.Println(err)

	d, err := strictyaml.Parse("plan.yaml", []byte("burst: 0\n"), &plan)
	fmt.Println(err)
	fmt.Println(d.Refuse("burst", "0 is too small", "1 to 1000000"))
	// Output:
	// plan.yaml:2: burst: got 1.5; accepted: a whole number
	// <nil>
	// plan.yaml:1: burst: 0 is too small; accepted: 1 to 1000000
}
