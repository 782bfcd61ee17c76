package postgres

// The names of the statements that requests make use of. They are prepared on
// every connection, and no name is the text of a statement.
const (
	lookupName   = "lookup"
	lockName     = "lock"
	reserveName  = "reserve"
	lockOfName   = "lock_of"
	chargeName   = "charge"
	giveBackName = "give_back"
	undoName     = "undo"
)

func statements() map[string]string {
	return map[string]string{
		lookupName:   lookupStatement,
		lockName:     lockStatement,
		reserveName:  reserveStatement,
		lockOfName:   lockOfStatement,
		chargeName:   chargeStatement,
		giveBackName: giveBackStatement,
		undoName:     undoStatement,
	}
}
