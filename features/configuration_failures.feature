Feature: Configuration failures
  What a user gets whose limits nobody can know: an error of its own, never somebody else's limits and never none.

  @CFG-1 @MUST @needs-entitlements
  Rule: A broken entitlement is answered with a 503 of its own

    Scenario Outline: an entitlement that is <broken>
      Given a rested user on the smallest plan
      When they send a valid request with each entitlement in turn <broken>
      Then each answer is a configuration failure

      Examples:
        | broken                      |
        | missing                     |
        | empty                       |
        | zero                        |
        | negative                    |
        | fractional                  |
        | written with a leading zero |
        | written with a plus sign    |
        | written with a space        |
        | in words                    |
        | a sentinel                  |
        | above the range             |
        | huge                        |
        | an exponent                 |
        | not a number                |

  @CFG-2 @MUST @needs-entitlements
  Rule: It never means unlimited, and never another plan's limits

    Scenario Outline: a <dimension> that is <broken> lets nothing through, however often it is asked
      Given a rested user on the smallest plan
      When their <dimension> entitlement is <broken>
      And they send more than their burst of such requests
      Then each answer is a configuration failure

      Examples:
        | dimension | broken    |
        | rate      | missing   |
        | burst     | missing   |
        | cap       | missing   |
        | rate      | malformed |
        | burst     | malformed |
        | cap       | malformed |

    Scenario: an empty bucket is not looked at
      Given an emptied user on the smallest plan
      When their burst entitlement is missing
      And they send a valid request that nobody can know the limits of
      Then the answer is a configuration failure

    @needs-hold
    Scenario: a full cap is not looked at
      Given a user with the whole cap in flight
      When their cap entitlement is missing
      And they send a valid request that nobody can know the limits of
      Then the answer is a configuration failure

  @CFG-3 @MUST @needs-entitlements @needs-audit
  Rule: It does no engine work, charges nothing and is one log entry

    Scenario Outline: a <dimension> that is <broken>
      Given a user with tokens to spare
      When their <dimension> entitlement is <broken>
      And they send a valid request that nobody can know the limits of
      Then it had these effects:
        | log entries | 1 |

      Examples:
        | dimension | broken    |
        | rate      | missing   |
        | cap       | malformed |

  @CFG-4 @DECIDED @needs-entitlements
  Rule: It carries no RateLimit header and touches no bucket

    Scenario: there is no bucket to describe
      Given a user with tokens to spare
      When their rate entitlement is missing
      And they send a valid request that nobody can know the limits of
      Then the answer carries no RateLimit header

    Scenario: the old bucket serves again once the entitlement is mended
      Given a rested user on the smallest plan
      When they spend half of their burst
      And their burst entitlement is malformed
      And they send more than their burst of such requests
      And their entitlements are mended
      And they send requests until the first rejection
      Then the share that was left was admitted

    Scenario: tokens come back meanwhile as they always do
      Given an emptied user on the smallest plan
      When their rate entitlement is missing
      And they send a valid request that nobody can know the limits of
      And they wait for two tokens
      And their entitlements are mended
      And they send requests until the first rejection
      Then what had come back was admitted

  @CFG-5 @DECIDED @needs-entitlements @needs-policy
  Rule: An active override that is malformed is a configuration failure too

    Scenario Outline: an override that is <broken>
      Given a rested user on the smallest plan
      When they send a valid request with each override in turn stored as <broken>
      Then each answer is a configuration failure

      Examples:
        | broken                      |
        | empty                       |
        | zero                        |
        | negative                    |
        | fractional                  |
        | written with a leading zero |
        | written with a plus sign    |
        | written with a space        |
        | in words                    |
        | a sentinel                  |
        | above the range             |
        | huge                        |

    Scenario: once it is ended the plan's values are there
      Given a rested user on the smallest plan
      When they spend half of their burst
      And their burst override is stored malformed
      And they send a valid request that nobody can know the limits of
      And their burst override is ended
      And they send requests until the first rejection
      Then burst and rate were as agreed

    @needs-clock
    Scenario: one that has expired does not matter
      Given a rested user on the smallest plan
      When their burst override is stored malformed, to expire
      And they send a valid request that nobody can know the limits of
      And they wait until it expires
      And they send requests until the first rejection
      Then burst and rate were as agreed
