package target

import "net/http"

func (t *Target) loadOperations() error {
	request := func(o Operation) (Request, error) {
		body, err := t.file.body(o)
		r := Request{Method: o.Method, Path: o.Path, Body: body, bodyFile: o.BodyFile}
		if len(o.Headers) > 0 {
			r.Header = http.Header{}
			for name, value := range o.Headers {
				r.Header[name] = []string{value}
			}
		}
		return r, err
	}
	var err error
	if t.valid, err = request(t.file.Operations.Valid); err == nil && t.file.Operations.Invalid != nil {
		t.invalid, err = request(*t.file.Operations.Invalid)
	}
	if err == nil && t.file.Operations.Failing != nil {
		t.failing, err = request(*t.file.Operations.Failing)
	}
	if err == nil && t.file.Operations.Slow != nil {
		t.slow, err = request(t.file.Operations.Slow.Operation)
	}
	return err
}

// Valid is the operation that succeeds.
func (t *Target) Valid() Request { return t.valid.clone() }

// Invalid is the operation that fails validation; false: the target has none.
func (t *Target) Invalid() (Request, bool) {
	return t.invalid.clone(), t.file.Operations.Invalid != nil
}

// Failing is the operation that the engine fails; false: the target has none.
func (t *Target) Failing() (Request, bool) {
	return t.failing.clone(), t.file.Operations.Failing != nil
}

// ExpectFailing is the status that [Target.Failing] ends with when admitted; 0:
// one of 500 and above.
func (t *Target) ExpectFailing() int {
	if o := t.file.Operations.Failing; o != nil {
		return int(o.Expect)
	}
	return 0
}

// ExpectValid is the status that [Target.Valid] ends with when admitted.
func (t *Target) ExpectValid() int { return t.file.Operations.Valid.expect(http.StatusOK) }

// ExpectInvalid is the status that [Target.Invalid] ends with when admitted.
func (t *Target) ExpectInvalid() int {
	usual := t.wording.Reply(http.StatusUnprocessableEntity).Status
	if o := t.file.Operations.Invalid; o != nil {
		return o.expect(usual)
	}
	return usual
}

// Staying is the operation to hold at a place.
func (t *Target) Staying(p Place) Request {
	if p == PlaceWork {
		return t.slow.clone()
	}
	return t.Valid()
}

// ExpectStaying is the status that [Target.Staying] ends with when admitted.
func (t *Target) ExpectStaying(p Place) int {
	if o := t.file.Operations.Slow; p == PlaceWork && o != nil {
		return o.expect(http.StatusOK)
	}
	return t.ExpectValid()
}

func (o Operation) expect(usual int) int {
	if o.Expect != 0 {
		return int(o.Expect)
	}
	return usual
}
