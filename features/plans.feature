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

    Scenario: a lower cap lets running requests finish and admits none meanwhile
      Given a user with the whole cap in flight on a plan with room
      When their cap is lowered by one
      Then what is in flight goes on
      And there is no place before two of them have ended

    Scenario: a higher cap is there at once
      Given a user with the whole cap in flight on a plan with room
      When their cap is raised by two
      Then there are exactly two places more
