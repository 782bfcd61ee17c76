Feature: Concurrency
  How many requests of one user may be in flight.

  @CONC-1 @MUST @needs-hold
  Rule: With the cap in flight the next request is rejected

    Scenario: one more than the cap
      Given a user with the whole cap in flight
      When they send a valid request
      Then the answer is a concurrency rejection

  @CONC-2 @MUST @needs-hold
  Rule: A concurrency rejection says Retry-After: 1 and describes the bucket

    Scenario: the headers of a concurrency rejection
      Given a user with the whole cap in flight
      When they send a valid request
      Then the answer says Retry-After: 1
      And it carries the RateLimit headers

  @CONC-3 @MUST @needs-hold
  Rule: A concurrency rejection does not give its token back

    Scenario: requests above the cap cost one token each
      Given a user with the whole cap in flight
      When they send three valid requests
      And they let go of what is in flight
      Then each of them spent exactly one token

  @CONC-4 @MUST @needs-hold @needs-invalid
  Rule: The cap comes before validation

    Scenario: a full cap is told before a validation failure
      Given a user with the whole cap in flight
      When they send a request that fails validation
      Then the answer is a concurrency rejection

  @CONC-5 @MUST @needs-hold @needs-audit
  Rule: A concurrency rejection does no work and charges nothing

    Scenario: a request above the cap leaves a log entry and nothing else
      Given a user with the whole cap in flight
      When they send a valid request
      Then the answer is a concurrency rejection
      And it had these effects:
        | log entries | 1 |

  @CONC-6 @MUST @needs-hold
  Rule: Simultaneous requests fill the cap, never more and never less

    Scenario: as many at once as the cap
      Given a user on the quickest plan
      When they start as many requests at once as their cap
      Then all of them are in flight

    Scenario: more at once than the cap
      Given a user on the quickest plan
      When they start more requests at once than their cap
      Then exactly the cap is in flight
