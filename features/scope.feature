Feature: Scope
  Which requests are limited, which never are, and who counts as nobody.

  @SCOPE-1 @MUST
  Rule: /v1/invoice and everything below it is limited

    Scenario Outline: requests to <where> end in a rejection
      Given a rested user on the smallest plan
      When they send requests to <where> until the first rejection
      Then no more than their bucket held were admitted

      Examples:
        | where                |
        | /v1/invoice itself   |
        | an unknown path      |
        | a path far below it  |

  @SCOPE-2 @MUST
  Rule: What lies outside the quotas is never limited

    @needs-outside
    Scenario: an empty bucket does not matter there
      Given an emptied user on the smallest plan
      When they ask every route outside the quotas
      Then each of them answers, without RateLimit headers

    @needs-outside
    Scenario: asking there costs no token
      Given a user with tokens to spare
      When they ask every route outside the quotas
      Then no token was spent

    @needs-outside @needs-hold
    Scenario: a full cap does not matter there
      Given a user with the whole cap in flight
      When they ask every route outside the quotas
      Then each of them answers, without RateLimit headers

    @needs-internal
    Scenario: an empty bucket does not matter at an internal route, whoever asks
      Given an emptied user on the smallest plan
      When they try every internal route
      Then each of them answers, without RateLimit headers

    @needs-internal
    Scenario: asking at an internal route costs no token, whoever asks
      Given a user with tokens to spare
      When they try every internal route
      Then no token was spent

    @needs-outside
    Scenario: attempts without a key do not matter there either
      Given an emptied address
      When somebody asks every route outside the quotas from there
      Then each of them answers, without RateLimit headers

    @needs-outside
    Scenario: asking there is no attempt
      Given an address at rest
      When somebody asks every route outside the quotas from there
      And somebody tries wrong keys from there until the first rejection
      Then the address's burst was let through, and no more

  @SCOPE-3 @DECIDED
  Rule: An unknown path or a wrong method in scope is answered like any other error

    Scenario Outline: <request> gets a <status> that costs one token
      Given a user with tokens to spare
      When they send <request>
      Then the answer has status <status> and the error shape
      And it carries the RateLimit headers
      And exactly one token was spent

      Examples:
        | request                       | status |
        | a request to an unknown path  | 404    |
        | a request with a wrong method | 405    |

  @SCOPE-4 @DECIDED
  Rule: No spelling of a path and no method goes around the limits

    Scenario: no other spelling of the path gets past an empty bucket
      Given an emptied user on the smallest plan
      When they spell the valid operation's path in every other way
      Then none of them got through

    Scenario Outline: <request> costs one token
      Given a user with tokens to spare
      When they send <request>
      Then exactly one token was spent

      Examples:
        | request            |
        | a HEAD request     |
        | an OPTIONS request |

  @AUTH-1 @DECIDED
  Rule: Without exactly one good key a request does not authenticate

    Scenario: all bad credentials get the same answer
      Given an address at rest
      And a user with tokens to spare
      When somebody sends valid requests with every kind of bad credentials
      Then each was refused as unauthenticated
      And the answers differ in nothing but the request id
      And no token was spent

    @needs-policy @needs-keys
    Scenario: a revoked key is one of them
      Given an address at rest
      And a user with two keys and tokens to spare
      When they send a valid request with their second key
      And their second key is revoked
      And somebody sends valid requests with no key and with that key
      Then each was refused as unauthenticated
      And the answers differ in nothing but the request id
      And no token was spent
