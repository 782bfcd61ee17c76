Feature: Errors
  What a refusal looks like.

  @ERR-1 @MUST
  Rule: An error body is a JSON object with three non-empty strings

    Scenario Outline: the answer to <request> has the error shape
      Given a user with tokens to spare
      When they send <request>
      Then the answer has the error shape

      Examples:
        | request                       |
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

  @ERR-2 @MUST
  Rule: X-Request-Id is on every answer, equals the body's, and is never used twice

    Scenario: answers of every kind have an id of their own
      Given a user with tokens to spare
      When they send valid requests, unknown paths and requests at an empty bucket
      Then each answer has a request id of its own

  @ERR-3 @MUST
  Rule: An empty bucket answers 429 RATE_LIMIT_EXCEEDED

    Scenario: a request at an empty bucket
      Given an emptied user on the smallest plan
      When they send a valid request
      Then the answer is a rate rejection

    @needs-upload
    Scenario: the rejection does not wait for the request's body
      Given an emptied user on the smallest plan
      When they send a request whose body stops half-way
      Then the answer is a rate rejection

    Scenario: the rejection reaches a client that sends its whole body first
      Given an emptied user on the smallest plan
      When they send a request with a large body
      Then the answer is a rate rejection

  @ERR-4 @DECIDED
  Rule: A 429 must not be stored by a cache

    Scenario: a rate rejection
      Given a user with tokens to spare
      When they send a request at an empty bucket
      Then the answer forbids caches to store it

    @needs-hold
    Scenario: a concurrency rejection
      Given a user with tokens to spare
      When they send a request above the cap
      Then the answer forbids caches to store it

  @ERR-5 @DECIDED
  Rule: The server mints every request id

    Scenario: an id that the client sends is ignored
      Given a user with tokens to spare
      When they send two valid requests with a request id of their own
      Then the answers have other ids

    @needs-audit
    Scenario: an id that anybody sends is not logged
      Given an address with attempts to spare
      When an attempt comes from there with a request id of its own
      Then neither the log entry nor the answer holds that id

    @needs-audit @needs-proxy
    Scenario: an id that a trusted proxy sends is logged and nothing more
      Given a client behind a trusted proxy
      When an attempt comes from there with a request id of its own
      Then the log entry holds that id, and the answer another
