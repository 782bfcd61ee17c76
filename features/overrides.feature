Feature: Overrides
  What an operator agreed with one user, in one dimension, for as long as it was agreed.

  @OVR-1 @MUST @needs-policy
  Rule: An override replaces its one dimension for its one user

    Scenario Outline: an override of the <dimension> leaves the others as the plan has them
      Given a rested user on the smallest plan
      When their <dimension> is set by an override
      And they send requests until the first rejection
      And they wait for two tokens
      And they send requests until the first rejection
      Then burst and rate were as agreed

      Examples:
        | dimension |
        | rate      |
        | burst     |
        | cap       |

    @needs-hold
    Scenario Outline: an override of the <dimension> leaves the right cap
      Given a rested user on a plan with room
      When their <dimension> is set by an override
      And they send a valid request
      Then their cap is exact

      Examples:
        | dimension |
        | rate      |
        | burst     |
        | cap       |

    Scenario: another user on the plan keeps what the plan has
      Given a rested user on the smallest plan
      And another user on the same plan
      When their burst is set by an override
      And they send a valid request
      And the other user spends their whole bucket
      Then burst and rate were still the plan's

  @OVR-2 @MUST @needs-policy
  Rule: An override may raise or lower

    Scenario Outline: the <dimension> can be <direction>
      Given a rested user on the smallest plan
      When their <dimension> is <direction> by an override
      And they send requests until the first rejection
      And they wait for two tokens
      And they send requests until the first rejection
      Then burst and rate were as agreed

      Examples:
        | dimension | direction |
        | rate      | raised    |
        | rate      | lowered   |
        | burst     | raised    |
        | burst     | lowered   |

    @needs-hold
    Scenario Outline: the cap can be <direction>
      Given a rested user on a plan with room
      When their cap is <direction> by an override
      And they send a valid request
      Then their cap is exact

      Examples:
        | direction |
        | raised    |
        | lowered   |

  @OVR-3 @MUST @needs-policy
  Rule: What is no positive integer in range is refused where it is written

    Scenario Outline: <value> is refused and changes nothing
      Given a rested user on the smallest plan
      When an operator writes <value> as each of their overrides
      And they send requests until the first rejection
      Then each was refused with a clear error
      And burst and rate were still the plan's

      Examples:
        | value                       |
        | null                        |
        | zero                        |
        | a negative number           |
        | a fraction                  |
        | a whole number with a point |
        | a number above the range    |
        | a huge number               |
        | the largest integer         |
        | a word                      |
        | a number in quotes          |
        | an empty text               |
        | a truth value               |
        | a list                      |
        | an object                   |

    Scenario: a refused override leaves the one before in force
      Given a rested user on the smallest plan
      When their burst is raised by an override
      And an operator writes null as each of their overrides
      And they send requests until the first rejection
      Then each was refused with a clear error
      And burst and rate were as agreed

  @OVR-4 @MUST @needs-policy @needs-clock
  Rule: At an override's expiry the plan's value is back by itself

    Scenario Outline: an override of the <dimension> holds until it expires, not longer
      Given a rested user on the smallest plan
      When their <dimension> is raised by an override that expires
      And they wait until just before it expires
      And they send requests until the first rejection
      And they wait until it expires
      And they send requests until the first rejection
      And they wait for two tokens
      And they send requests until the first rejection
      Then burst and rate were as agreed

      Examples:
        | dimension |
        | rate      |
        | burst     |

    @needs-hold
    Scenario: an override of the cap holds until it expires, not longer
      Given a rested user on a plan with room
      When their cap is raised by an override that expires
      And they send a valid request
      And they wait until it expires
      Then their cap is exact

  @OVR-5 @MUST @needs-policy
  Rule: Adding, changing or ending an override keeps the used share of the bucket

    Scenario Outline: one that is <added> keeps it
      Given a rested user on the smallest plan
      When they spend half of their burst
      And their burst is <added> by an override
      And they send requests until the first rejection
      Then the share that was left was admitted

      Examples:
        | added   |
        | raised  |
        | lowered |

    Scenario Outline: one that is replaced by a <size> one keeps it
      Given a rested user on the smallest plan
      When their burst is raised by an override
      And they spend half of their burst
      And their burst override is replaced by a <size> one
      And they send requests until the first rejection
      Then the share that was left was admitted

      Examples:
        | size    |
        | larger  |
        | smaller |

    Scenario: one that is written again as it is keeps it
      Given a rested user on the smallest plan
      When their burst is raised by an override
      And they spend half of their burst
      And their burst override is written again as it is
      And they send requests until the first rejection
      Then the share that was left was admitted

    Scenario: one that is ended keeps it
      Given a rested user on the smallest plan
      When their burst is raised by an override
      And they spend half of their burst
      And their burst override is ended
      And they send requests until the first rejection
      Then the share that was left was admitted

    @needs-clock
    Scenario: one that expires keeps it
      Given a rested user on the smallest plan
      When their burst is raised by an override that expires
      And they wait until just before it expires
      And they spend half of their burst
      And they wait until it expires
      And they send requests until the first rejection
      Then the share that was left was admitted

  @OVR-6 @MUST @needs-policy
  Rule: A user's key can never write an override

    Scenario: not by the control protocol, asked for where users ask
      Given a rested user on the smallest plan
      When they try to write themselves overrides as the control protocol does
      And they send requests until the first rejection
      Then each attempt was refused
      And burst and rate were still the plan's

    @needs-internal
    Scenario: not at any internal route
      Given a rested user on the smallest plan
      When they try every internal route
      And they send requests until the first rejection
      Then each attempt was refused
      And burst and rate were still the plan's

    @needs-internal @needs-history
    Scenario: nothing of it is left in the history
      Given a rested user on the smallest plan
      When they try every internal route
      Then each attempt was refused
      And their history holds no override

  @OVR-7 @DECIDED @needs-policy
  Rule: At most one override of a dimension is active, and the one that it replaced stays in the audit trail

    Scenario: one that replaced another is not followed by it when it is ended
      Given a rested user on the smallest plan
      When their burst is raised by an override
      And they send a valid request
      And their burst override is replaced by a larger one
      And they send a valid request
      And their burst override is ended
      And they send requests until the first rejection
      Then burst and rate were as agreed

    @needs-clock
    Scenario: one that replaced another is not followed by it when it expires
      Given a rested user on the smallest plan
      When their burst is raised by an override
      And their burst override is replaced by a larger one that expires
      And they send a valid request
      And they wait until it expires
      And they send requests until the first rejection
      Then burst and rate were as agreed

    @needs-history
    Scenario: the one that was replaced stays in the audit trail
      Given a rested user on the smallest plan
      When their burst is raised by an override with a reason and an author
      And their burst override is replaced by a larger one
      Then their history holds both, the first one as ended, each with reason and author

  @OVR-8 @DECIDED @needs-policy
  Rule: An override is for a user of any plan, and stays over plan changes until it ends

    Scenario Outline: a user on <plan> can have one
      Given a rested user on <plan>
      When their rate is raised by an override
      And they send requests until the first rejection
      And they wait for two tokens
      And they send requests until the first rejection
      Then burst and rate were as agreed

      Examples:
        | plan                |
        | the free plan       |
        | the starter plan    |
        | the plus plan       |
        | the pro plan        |
        | the enterprise plan |
        | every other plan    |

    @needs-plans
    Scenario: it stays when the plan changes
      Given a rested user on the smallest plan
      When their rate is raised by an override
      And they are moved to the next larger plan
      And they send requests until the first rejection
      And they wait for two tokens
      And they send requests until the first rejection
      Then burst and rate were as agreed

    @needs-plans
    Scenario: once it is ended the new plan's value is there
      Given a rested user on the smallest plan
      When their rate is raised by an override
      And they are moved to the next larger plan
      And they send a valid request
      And their rate override is ended
      And they send requests until the first rejection
      And they wait for two tokens
      And they send requests until the first rejection
      Then burst and rate were as agreed

    @needs-plans @needs-schedule @needs-clock
    Scenario: it stays over the billing-period boundary
      Given a rested user on the smallest plan
      When their rate is raised by an override
      And the next larger plan is scheduled for the end of their billing period
      And they send a valid request
      And they wait until it takes over
      And they send requests until the first rejection
      And they wait for two tokens
      And they send requests until the first rejection
      Then burst and rate were as agreed
