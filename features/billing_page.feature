Feature: Billing page
  What a user can read of their own limits.

  @BILL-1 @MUST @needs-page @needs-policy
  Rule: The page shows the effective values, tells a negotiated one from a plan's, and keeps reason and author to itself

    Scenario: a plan's own values
      Given a rested user on the smallest plan
      When they look at their billing page
      Then it shows their rate, burst and cap
      And it calls none of them negotiated

    Scenario Outline: a negotiated <dimension>
      Given a rested user on the smallest plan
      When their <dimension> is set to a telling number by an override with a reason and an author
      And they look at their billing page
      Then it shows their rate, burst and cap
      And it calls one of them negotiated
      And neither reason nor author is in it

      Examples:
        | dimension |
        | rate      |
        | burst     |
        | cap       |

    Scenario: a negotiated value that was ended
      Given a rested user on the smallest plan
      When their burst is set to a telling number by an override with a reason and an author
      And their burst override is ended
      And they look at their billing page
      Then it shows their rate, burst and cap
      And it calls none of them negotiated
      And neither reason nor author is in it
