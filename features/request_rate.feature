Feature: Request rate
  A bucket of tokens: how many at once, how fast they come back, what each request costs.

  @RATE-1 @MUST
  Rule: A full bucket admits exactly its burst at one instant

    Scenario Outline: a rested user on <plan> spends the whole burst
      Given a rested user on <plan>
      When they send requests until the first rejection
      Then the whole burst was admitted

      Examples:
        | plan                |
        | the free plan       |
        | the starter plan    |
        | the plus plan       |
        | the pro plan        |
        | the enterprise plan |
        | every other plan    |

  @RATE-2 @MUST
  Rule: Over any time the burst and the rate are admitted, no more and no less

    Scenario Outline: an emptied user on <plan> gets the plan's rate
      Given an emptied user on <plan>
      When they wait for two tokens
      And they send requests until the first rejection
      Then what had come back was admitted

      Examples:
        | plan                |
        | the free plan       |
        | the starter plan    |
        | the plus plan       |
        | the pro plan        |
        | the enterprise plan |
        | every other plan    |

  @RATE-3 @MUST
  Rule: Idle time never stores more than the burst

    Scenario: a full bucket that idles on holds its burst
      Given a rested user on the quickest plan
      When they send a valid request
      And they idle until their bucket has long been full
      And they send requests until the first rejection
      Then the whole burst was admitted

  @RATE-4 @MUST
  Rule: Every authenticated request costs one token, however it ends

    Scenario Outline: <request> costs one token
      Given a user with tokens to spare
      When they send <request>
      Then exactly one token was spent

      Examples:
        | request                       |
        | a valid request               |
        | a request to an unknown path  |
        | a request with a wrong method |

      @needs-invalid
      Examples:
        | request                         |
        | a request that fails validation |

      @needs-operations
      Examples:
        | request                           |
        | a request without operations left |

      @needs-fail
      Examples:
        | request                         |
        | a request that the engine fails |

      @needs-engine
      Examples:
        | request                               |
        | a request that makes the engine panic |
        | a request that runs into its timeout  |

      @needs-hold
      Examples:
        | request                 |
        | a request above the cap |

  @RATE-5 @MUST @needs-invalid
  Rule: The token goes before validation

    Scenario: an empty bucket is told before a validation failure
      Given an emptied user on the smallest plan
      When they send a request that fails validation
      Then the answer is a rate rejection

  @RATE-6 @MUST @needs-hold
  Rule: The rate is checked before the cap, and a rate rejection takes no permit

    Scenario: an empty bucket is told before a full cap
      Given a user with the whole cap in flight and an empty bucket
      When they send a request at their empty bucket
      Then the answer is a rate rejection

    Scenario: rate rejections leave the cap as it was
      Given a user whose cap is exact
      When they spend their whole bucket
      And they are rejected more often than their cap is large
      Then their cap is exact

  @RATE-7 @MUST @needs-audit
  Rule: A rate rejection does no engine work and charges nothing

    Scenario: a request at an empty bucket leaves a log entry and nothing else
      Given an emptied user on the smallest plan
      When they send a valid request
      Then the answer is a rate rejection
      And it had these effects:
        | log entries | 1 |

  @RATE-8 @DECIDED
  Rule: A rejected request spends nothing and never delays the next token

    Scenario: hammering an empty bucket does not push the wait out
      Given an emptied user on the slowest plan
      When they are rejected a dozen times
      And they wait as long as the first Retry-After said
      And they send a valid request
      Then the answer is no rejection

    Scenario: what has come back of a token is not lost
      Given an emptied user on the slowest plan
      When they are rejected at odd moments until the next token is due
      And they wait until the next token is due
      And they send a valid request
      Then the answer is no rejection

  @RATE-9 @MUST
  Rule: Simultaneous requests spend exactly what the bucket holds

    Scenario: more requests at once than the burst
      Given a rested user on the quickest plan
      When they send more requests at once than their burst
      Then as many got past the rate limit as the bucket held

  @RATE-10 @DECIDED
  Rule: Refill is continuous

    Scenario: tokens come back one at a time
      Given an emptied user on the fastest plan
      When they ask four times a token while five come back
      Then every token came on time

    Scenario: a token is neither early nor late
      Given an emptied user on the slowest plan
      When they ask just before and just after the next token is due
      Then every token came on time
