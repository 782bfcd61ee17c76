Feature: Plans
  What a plan is worth, and what a change of plan does to a bucket in use.

  @PLAN-1 @MUST @needs-plans
  Rule: A plan's allowance is what its entitlements say

    Scenario Outline: a user on <plan> has the plan's burst and rate
      Given a rested user on <plan>
      When they send requests until the first rejection
      And they wait for two tokens
      And they send requests until the first rejection
      Then burst and rate were the plan's

      Examples:
        | plan                |
        | the free plan       |
        | the starter plan    |
        | the plus plan       |
        | the pro plan        |
        | the enterprise plan |
        | every other plan    |

    @needs-hold
    Scenario Outline: a user on <plan> has the plan's cap
      Given a user on <plan>
      When they send a valid request
      Then their cap is exact

      Examples:
        | plan                |
        | the free plan       |
        | the starter plan    |
        | the plus plan       |
        | the pro plan        |
        | the enterprise plan |
        | every other plan    |

  @PLAN-2 @MUST @needs-policy @needs-schedule @needs-plans
  Rule: A scheduled plan has no effect before the billing-period boundary, and its full effect at it

    @needs-clock
    Scenario: nothing changes before the boundary
      Given a rested user on the smallest plan
      When the next larger plan is scheduled for the end of their billing period
      And they send requests until the first rejection
      And they wait until just before it takes over
      And they send requests until the first rejection
      Then burst and rate were still the plan's

    @needs-clock
    Scenario Outline: burst and rate of a <size> plan are there at the boundary
      Given a rested user on the second smallest plan
      When the next <size> plan is scheduled for the end of their billing period
      And they wait until just before it takes over
      And they spend half of their burst
      And they wait until it takes over
      And they send requests until the first rejection
      And they wait for two tokens
      And they send requests until the first rejection
      Then burst and rate were as agreed

      Examples:
        | size    |
        | larger  |
        | smaller |

    @needs-clock @needs-hold
    Scenario: the cap is there at the boundary
      Given a rested user on the second smallest plan
      When the next larger plan is scheduled for the end of their billing period
      And they send a valid request
      And they wait until it takes over
      And they send a valid request
      Then their cap is exact

    Scenario: the boundary itself can be moved to now
      Given a rested user on the smallest plan
      When they spend half of their burst
      And the next larger plan is scheduled for the end of their billing period
      And they send a valid request
      And their billing period is ended now
      And they send requests until the first rejection
      Then burst and rate were as agreed

  @PLAN-3 @MUST @needs-policy @needs-operations
  Rule: Operations and limits have nothing to do with each other

    Scenario Outline: operations that are <changed> leave burst and rate alone
      Given a rested user on the smallest plan
      When they spend half of their burst
      And their operations are <changed>
      And they send requests until the first rejection
      And they wait for two tokens
      And they send requests until the first rejection
      Then the share that was left was admitted

      Examples:
        | changed |
        | used up |
        | bought  |

    @needs-hold
    Scenario: operations that are bought leave the cap alone
      Given a rested user on a plan with room
      When their operations are bought
      And they send a valid request
      Then their cap is exact

    Scenario: overrides leave operations alone
      Given a rested user on the smallest plan
      When they send a valid request
      And their operations are counted
      And their rate is raised by an override
      And their burst is raised by an override
      And their cap is raised by an override
      Then they have as many operations left and used as before

    Scenario: rejections leave operations alone
      Given an emptied user on the smallest plan
      When their operations are counted
      And they are rejected a dozen times
      Then they have as many operations left and used as before

  @CHG-1 @MUST @needs-policy @needs-plans
  Rule: An upgrade keeps the used share of the bucket

    Scenario: half of the old burst used, half of the new one there
      Given a rested user on the smallest plan
      When they spend half of their burst
      And they are moved to the next larger plan
      And they send requests until the first rejection
      Then the share that was left was admitted

  @CHG-2 @MUST @needs-policy @needs-plans
  Rule: A downgrade keeps the used share and never leaves more than the new burst

    Scenario: half of the old burst used, half of the new one there
      Given a rested user on the second smallest plan
      When they spend half of their burst
      And they are moved to the next smaller plan
      And they send requests until the first rejection
      Then the share that was left was admitted

    Scenario: nothing used, no more than the new burst there
      Given a rested user on the second smallest plan
      When they send a valid request
      And they idle until their bucket has long been full
      And they are moved to the next smaller plan
      And they send requests until the first rejection
      Then the share that was left was admitted

  @CHG-3 @DECIDED @needs-policy @needs-plans
  Rule: A change scales the bucket with the next request and mints nothing

    Scenario: time before the change is paid at the old rate
      Given an emptied user on the smallest plan
      When they wait for two tokens
      And they are moved to the next larger plan
      And they send requests until the first rejection
      Then the share that was left was admitted

    Scenario: changing back and forth mints no token and loses none
      Given a rested user on the smallest plan
      When they spend half of their burst
      And they are moved to the next larger plan and back twice, with a request after each move
      And they send requests until the first rejection
      Then the share that was left was admitted

    Scenario: a change of the rate alone keeps the tokens
      Given a rested user on the smallest plan
      When they spend half of their burst
      And their rate alone is doubled
      And they send requests until the first rejection
      Then the share that was left was admitted

  @CHG-4 @DECIDED @needs-policy @needs-hold
  Rule: A changed cap counts at once, and what is running stays

    @needs-upload
    Scenario: a lower cap lets running requests finish and admits none meanwhile
      Given a user with the whole cap in flight on a plan with room
      When their cap is lowered by one
      Then what is in flight goes on
      And there is no place before two of them have ended

    Scenario: a higher cap is there at once
      Given a user with the whole cap in flight on a plan with room
      When their cap is raised by two
      Then there are exactly two places more
