Feature: Pools
  Whose requests draw on the same bucket and the same cap.

  @POOL-1 @MUST
  Rule: All keys of a user draw on one bucket

    @needs-keys
    Scenario: what one key spends is gone for the other
      Given a user with two keys and tokens to spare
      When they send valid requests with one key and the other in turn
      Then each of them spent exactly one token

    @needs-keys
    Scenario: a bucket that one key emptied is empty for the other
      Given an emptied user with two keys
      When they send a valid request with their second key
      Then the answer is a rate rejection

    Scenario Outline: an emptied bucket is empty for <request> as well
      Given an emptied user on the smallest plan
      When they send <request>
      Then the answer is a rate rejection

      Examples:
        | request                       |
        | a request to an unknown path  |
        | a request with a wrong method |

  @POOL-2 @MUST @needs-keys @needs-hold
  Rule: All keys of a user share one concurrency cap

    Scenario: what one key has in flight counts for the other
      Given a user with two keys and the whole cap in flight
      When they send a valid request with their second key
      Then the answer is a concurrency rejection

  @POOL-3 @MUST @needs-plans
  Rule: Two users never share a bucket or a cap

    Scenario: one user's empty bucket leaves another's as it was
      Given a user with tokens to spare
      And another user on the same plan
      When the other user spends their whole bucket
      Then no token was spent

    @needs-hold
    Scenario: one user's full cap leaves another's free
      Given a user with tokens to spare
      And another user on the same plan with the whole cap in flight
      When they send a valid request
      Then the answer is no rejection
