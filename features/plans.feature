Feature: Plans
  What a plan is worth, and what a change of plan does to a bucket in use.

  @PLAN-1 @MUST @needs-plans
  Rule: A plan's allowance is what its entitlements say

    Scenario Outline: a user on <plan> has the plan's burst and rate
      Given a user on <plan>
      When they send three valid requests
      Then the headers are those of the plan's burst and rate

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
      Given a rested user on the smallest plan
      When they spend half of their burst
      And they wait for two tokens
      And they are moved to the next larger plan
      And they send requests until the first rejection
      Then the share that was left was admitted

    Scenario: changing back and forth mints no token and loses none
      Given a rested user on the smallest plan
      When they spend half of their burst
      And they are moved to the next larger plan and back twice, with a request after each move
      And they send requests until the first rejection
      Then the share that was left was admitted
