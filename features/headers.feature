Feature: Headers
  What every answer says about the bucket.

  @HDR-1 @MUST
  Rule: Every authenticated invoice answer carries the RateLimit headers

    Scenario Outline: the answer to <request> carries them
      Given a user with tokens to spare
      When they send <request>
      Then it carries the RateLimit headers

      Examples:
        | request                       |
        | a valid request               |
        | a request to an unknown path  |
        | a request with a wrong method |
        | a request at an empty bucket  |

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
        | request                              |
        | a request that runs into its timeout |

      @needs-hold
      Examples:
        | request                 |
        | a request above the cap |

  @HDR-2 @MUST
  Rule: RateLimit-Limit is the burst, not the rate

    Scenario Outline: a user on <plan> is told their burst
      Given a user on <plan>
      When they send a valid request
      Then RateLimit-Limit was the burst

      Examples:
        | plan                |
        | the free plan       |
        | the starter plan    |
        | the plus plan       |
        | the pro plan        |
        | the enterprise plan |
        | every other plan    |

  @HDR-3 @MUST
  Rule: RateLimit-Remaining is the whole tokens left

    Scenario: it counts down to the first rejection, parts of a token not counted
      Given a rested user on the quickest plan
      When they send a few requests at odd moments
      And they send requests until the first rejection
      Then RateLimit-Remaining was always the whole tokens left

  @HDR-4 @MUST
  Rule: RateLimit-Reset is the seconds until the bucket is full

    Scenario: it grows up to the first rejection, parts of a second rounded up
      Given a rested user on the quickest plan
      When they send a few requests at odd moments
      And they send requests until the first rejection
      Then RateLimit-Reset was always the seconds until the bucket is full

  @HDR-5 @MUST
  Rule: A rate 429 says after how many seconds a token is there

    Scenario: an emptied user is told when to come back, whenever they ask
      Given an emptied user on the slowest plan
      When they are rejected at odd moments until the next token is due
      Then Retry-After was always the seconds until the next token

    @needs-clock
    Scenario: a date that is set back makes nobody wait longer
      Given an emptied user on the slowest plan
      When they are rejected while the date is an hour behind
      Then Retry-After is what it would have been

  @HDR-6 @MUST
  Rule: Waiting Retry-After seconds is enough

    Scenario: an emptied user who obeys is admitted
      Given an emptied user on the slowest plan
      When they wait as long as Retry-After says
      And they send a valid request
      Then the answer is no rejection

  @HDR-7 @MUST
  Rule: Waiting RateLimit-Reset seconds is enough

    Scenario: a user who waits for the reset has the full burst
      Given a rested user on the quickest plan
      When they send a few requests at odd moments
      And they wait as long as RateLimit-Reset says
      And they send requests until the first rejection
      Then the whole burst was admitted

  @HDR-8 @DECIDED
  Rule: Each header comes once, as a plain non-negative integer

    Scenario Outline: the headers of <request> are plain
      Given a user with tokens to spare
      When they send <request>
      Then its headers are single plain integers, Remaining not above Limit

      Examples:
        | request                      |
        | a valid request              |
        | a request to an unknown path |
        | a request at an empty bucket |

      @needs-hold
      Examples:
        | request                 |
        | a request above the cap |

  @HDR-9 @MUST @needs-hold
  Rule: The RateLimit headers say nothing about concurrency

    Scenario: with every permit taken they describe the bucket
      Given a user with the whole cap in flight
      When they send a valid request
      Then its RateLimit headers describe the bucket

    Scenario: with one permit left they describe the bucket
      Given a user with all permits but one in flight
      When they send a request to an unknown path
      Then its RateLimit headers describe the bucket
